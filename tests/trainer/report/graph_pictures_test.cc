// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/graph_pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/status.h"
#include "tests/status_matchers.h"
#include "trainer/model.h"

namespace onestep {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

absl::StatusOr<Json> Pictures(const OptimizerSpec& optimizer,
                              const std::string& dot) {
  ModelSpec model;
  model.widths = {12, 8, 4};
  ASSIGN_OR_RETURN(Graph graph, BuildTrainStep(model, optimizer, 100, 16));
  ASSIGN_OR_RETURN(const Compiled compiled, Compile(graph.Clone(), {}));
  return GraphPictures(std::move(graph), compiled, {}, dot);
}

TEST(GraphPicturesTest, GroupsTheOpsThatBecameOne) {
  ASSERT_OK_AND_ASSIGN(const Json json, Pictures({}, "no-such-dot"));
  EXPECT_EQ(json["groups"][0], Json({{"name", "gather_convert"},
                                     {"from", "gather_rows + cast + scale"}}));
  EXPECT_EQ(json["groups"][1],
            Json({{"name", "matmul"}, {"from", "matmul + add_bias + relu"}}));
  // Not of the mul_scalar that a pass makes and another one takes.
  EXPECT_EQ(json["groups"][3],
            Json({{"name", "loss_grad"},
                  {"from",
                   "gather_rows + nll_loss + count_correct + softmax + "
                   "minus_one_hot + scale + reduce_rows + sgd_update"}}));
  EXPECT_GT(json["unfused_ops"], json["fused_steps"]);
}

TEST(GraphPicturesTest, FindsEachUnfusedOpInOneStep) {
  ASSERT_OK_AND_ASSIGN(const Json json, Pictures({}, "no-such-dot"));
  EXPECT_EQ(json["steps"].size(), json["fused_steps"]);
  EXPECT_EQ(json["steps"][1], Json({{"op", "matmul"}, {"unfused", {4, 5, 6}}}));
  std::vector<int> seen(json["unfused_ops"], 0);
  for (const Json& step : json["steps"]) {
    for (const int op : step["unfused"]) ++seen[op];
  }
  EXPECT_THAT(seen, testing::Each(1));
}

TEST(GraphPicturesTest, WithoutTheProgramThePicturesAreNullAndANoteSaysWhy) {
  ASSERT_OK_AND_ASSIGN(const Json json, Pictures({}, "no-such-dot"));
  EXPECT_TRUE(json["before"].is_null());
  EXPECT_TRUE(json["after"].is_null());
  EXPECT_EQ(json["note"], "no-such-dot: not found; install graphviz");
}

TEST(GraphPicturesTest, DrawsEachGroupInBothPictures) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    OptimizerSpec optimizer;
    optimizer.kind = kind;
    ASSERT_OK_AND_ASSIGN(const Json json, Pictures(optimizer, "dot"));
    if (json["before"].is_null()) GTEST_SKIP() << json["note"];
    const size_t groups = json["groups"].size();
    EXPECT_GE(groups, 4);
    for (const char* picture : {"before", "after"}) {
      const std::string svg = json[picture];
      EXPECT_THAT(svg, StartsWith("<svg"));
      for (size_t g = 0; g <= groups; ++g) {
        const auto frame =
            HasSubstr("class=\"cluster group" + std::to_string(g) + "\"");
        if (g < groups) {
          EXPECT_THAT(svg, frame) << picture;
        } else {
          EXPECT_THAT(svg, Not(frame)) << picture;
        }
      }
    }
  }
}

}  // namespace
}  // namespace onestep
