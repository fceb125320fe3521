// SPDX-License-Identifier: Apache-2.0
// The passes change what a step costs, not what it computes: over random
// networks the float64 values before and after are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/passes/mlp_graph.h"
#include "tests/compiler/passes/pass_test.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/oracle.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

constexpr int kGraphs = 300;

void ExpectSameValues(const TensorMap& want, const TensorMap& got,
                      double tolerance) {
  ASSERT_EQ(want.size(), got.size());
  for (const auto& [name, values] : want) {
    ASSERT_TRUE(got.count(name)) << name;
    ASSERT_EQ(values.size(), got.at(name).size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      const double bound = tolerance * std::max(1.0, std::abs(values[i]));
      ASSERT_NEAR(values[i], got.at(name)[i], bound) << name << "[" << i << "]";
    }
  }
}

bool IsPlain(const MlpSpec& spec) {
  return spec.update == OpKind::kSgdUpdate && spec.weight_decay == 0 &&
         !spec.share_weights && !spec.residual &&
         spec.extra == ExtraUse::kNone && spec.activation != Activation::kNone;
}

int CountNodes(const Graph& graph) {
  int count = 0;
  for (const auto& node : graph.nodes()) count += !node->def().Has(kLeaf);
  return count;
}

TEST(RandomGraphTest, PassesKeepTheValuesAndTheOrderOfInPlaceUpdates) {
  MlpRandom random(20240229);
  int plain = 0;
  for (int g = 0; g < kGraphs; ++g) {
    const auto [spec, textbook, bindings] = MakeRandomMlp(random);
    ASSERT_OK(textbook.Verify());
    SCOPED_TRACE(absl::StrCat("graph ", g, "\n", PrintGraph(textbook)));
    ASSERT_OK_AND_ASSIGN(const TensorMap want, Evaluate(textbook, bindings));

    Graph unfused = textbook.Clone(), fused = textbook.Clone();
    ASSERT_OK(RunPipeline(unfused, {.fuse = false, .check_reports = true}));
    ASSERT_OK(RunPipeline(fused, {.check_reports = true}));
    SCOPED_TRACE(absl::StrCat("fused\n", PrintGraph(fused)));
    ASSERT_OK_AND_ASSIGN(const TensorMap plain_values,
                         Evaluate(unfused, bindings));
    ExpectSameValues(want, plain_values, 1e-12);
    ASSERT_OK_AND_ASSIGN(const TensorMap fused_values,
                         Evaluate(AsRunInPlace(fused), bindings));
    ExpectSameValues(want, fused_values, 1e-12);
    ASSERT_TRUE(InPlaceLegal(fused));
    EXPECT_LT(CountNodes(fused), CountNodes(unfused));

    if (IsPlain(spec)) {
      ++plain;
      const int hidden = static_cast<int>(spec.widths.size()) - 2;
      const int per_layer = spec.activation == Activation::kGelu ? 5 : 4;
      EXPECT_EQ(CountNodes(fused), 4 + per_layer * hidden);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(plain, kGraphs / 20);
}

}  // namespace
}  // namespace onestep
