// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "compiler/ir/text.h"
#include "tests/compiler/passes/mlp_graph.h"
#include "tests/compiler/passes/pass_test.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Graph SmallGraph() {
  absl::StatusOr<Graph> graph = ParseGraph(R"(graph {
  %x = input f32[2]
  %0 = scale(%x) {alpha=1} : f32[2]
  %1 = scale(%0) {alpha=3} : f32[2]
  result y = %1
})");
  EXPECT_OK(graph);
  return *std::move(graph);
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// An empty folder of this test's own.
std::string FreshDir() {
  const std::filesystem::path dir =
      std::filesystem::path(testing::TempDir()) /
      testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir.string();
}

std::vector<std::string> FilesIn(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(dir)) {
    names.push_back(file.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

const PassRecord& Find(const std::vector<PassRecord>& records,
                       const std::string& name) {
  for (const PassRecord& record : records) {
    if (record.name == name) return record;
  }
  ADD_FAILURE() << "no record of " << name;
  return records[0];
}

TEST(PipelineTest, FusesTheReferenceStepToEightNodes) {
  Graph graph = MakeMlp({});
  ASSERT_OK(RunPipeline(graph, {.check_reports = true}));
  EXPECT_EQ(PrintGraph(graph), Canonical(R"(graph {
  %images = input u8[60000,784]
  %labels = input i32[60000]
  %indices = input i32[32]
  %lr = input f32[]
  %w1 = param f32[784,128]
  %b1 = param f32[128]
  %w2 = param f32[128,10]
  %b2 = param f32[10]
  %x = gather_convert(%images, %indices) {alpha=0.003921569} : f32[32,784] @forward
  %a = matmul(%x, %w1, %b1) {bias=true, activation=relu} : f32[32,128] @forward
  %z = matmul(%a, %w2, %b2) {bias=true} : f32[32,10] @forward
  %l:4 = loss_grad(%z, %labels, %indices, %lr, %b2) {gather=true, scaled=true, bias=update} : f32[], f32[32,10], f32[], f32[10] @loss
  %da = matmul(%l#1, %w2) {trans_b=true} : f32[32,128] @backward
  %d:2 = activation_grad(%a, %da, %b1) {activation=relu, bias=update} : f32[32,128], f32[128] @backward
  %w1n = matmul(%x, %d#0, %w1) {trans_a=true, accumulate=true} : f32[784,128] @update
  %w2n = matmul(%a, %l#1, %w2) {trans_a=true, accumulate=true} : f32[128,10] @update
  update w1 = %w1n
  update b1 = %d#1
  update w2 = %w2n
  update b2 = %l#3
  result loss = %l#0
  result correct = %l#2
})"));
  EXPECT_TRUE(InPlaceLegal(graph));
}

TEST(PipelineTest, AccountsForEveryTextbookOpInTheFusedNodes) {
  const auto count = [](const Graph& graph) {
    std::map<std::string, int> ops;
    for (const auto& node : graph.nodes()) {
      if (node->fused_from.empty()) ++ops[node->op()];
      for (const std::string& op : node->fused_from) ++ops[op];
    }
    return ops;
  };
  Graph graph = MakeMlp({});
  std::map<std::string, int> want = count(graph);
  want["mul_scalar"] = 1;  // by -lr: the part of the updates taken before them
  ASSERT_OK(RunPipeline(graph, {}));
  EXPECT_EQ(count(graph), want);
}

TEST(PipelineTest, NumbersTheTextbookNodesThatAFusedNodeCameFrom) {
  Graph graph = MakeMlp({});
  const Graph textbook = graph.Clone();
  ASSERT_OK(RunPipeline(graph, {}));
  std::vector<int> seen(textbook.size(), 0);
  for (const auto& node : graph.nodes()) {
    std::vector<std::string> names;
    for (const int origin : node->origins) {
      ++seen[origin];
      names.push_back(textbook.nodes()[origin]->op());
    }
    if (node->fused_from.empty()) {
      EXPECT_THAT(names, ElementsAre(node->op()));
      continue;
    }
    std::vector<std::string> from = node->fused_from;
    std::erase(from, "mul_scalar");  // by -lr: made by a pass
    EXPECT_EQ(names, from);
  }
  EXPECT_THAT(seen, testing::Each(1));
}

TEST(PipelineTest, KeepsTheTextbookStepWithFusionOff) {
  Graph graph = MakeMlp({});
  const std::string before = PrintGraph(graph);
  ASSERT_OK_AND_ASSIGN(const auto records, RunPipeline(graph, {.fuse = false}));
  EXPECT_EQ(PrintGraph(graph), before);
  for (const PassRecord& record : records) {
    const bool cleans = record.name == "simplify" || record.name == "cse" ||
                        record.name == "dce" || record.name == "sparse-input" ||
                        record.name == "vectorize";
    EXPECT_EQ(record.ran, cleans) << record.name;
    EXPECT_FALSE(record.changed) << record.name;
  }
}

TEST(PipelineTest, KeepsTheUpdatesOfMomentumAndSaysWhy) {
  Graph graph = MakeMlp({.update = OpKind::kMomentumUpdate});
  ASSERT_OK_AND_ASSIGN(const auto records, RunPipeline(graph, {}));
  const std::string text = PrintGraph(graph);
  EXPECT_THAT(text, HasSubstr("{activation=relu, bias=grad}"));
  EXPECT_THAT(text, HasSubstr("{gather=true, bias=grad}"));
  EXPECT_THAT(text, Not(HasSubstr("accumulate")));
  for (const char* pass : {"fold-learning-rate", "fuse-update"}) {
    EXPECT_THAT(Find(records, pass).refusals,
                testing::Contains(HasSubstr("momentum_update of %w1 keeps a "
                                            "state that is not linear in lr")))
        << pass;
  }
  EXPECT_THAT(
      Find(records, "fuse-bias-update").refusals,
      testing::Contains(HasSubstr("momentum_update of %b1 keeps a state")));
}

TEST(PipelineTest, KeepsTheUpdatesUnderWeightDecayAndSaysWhy) {
  Graph graph = MakeMlp({.weight_decay = 0.5f});
  ASSERT_OK_AND_ASSIGN(const auto records, RunPipeline(graph, {}));
  EXPECT_THAT(PrintGraph(graph), HasSubstr("{weight_decay=0.5}"));
  EXPECT_THAT(PrintGraph(graph), Not(HasSubstr("accumulate")));
  EXPECT_THAT(
      Find(records, "fuse-update").refusals,
      testing::Contains(HasSubstr(
          "weight decay scales %w1 by 1 - lr * decay, read at run time")));
}

TEST(PipelineTest, RunsThePassesInTheirOrderAndRecordsThem) {
  Graph graph = SmallGraph();
  ASSERT_OK_AND_ASSIGN(const auto records,
                       RunPipeline(graph, {.keep_text = true}));
  std::vector<std::string> names;
  for (const PassRecord& record : records) names.push_back(record.name);
  EXPECT_THAT(
      names,
      ElementsAre("vectorize", "simplify", "cse", "dce", "fold-learning-rate",
                  "sparse-update", "fuse-sparse-window", "fuse-loss-grad",
                  "fuse-gather", "fuse-bias-activation", "fuse-activation-grad",
                  "fuse-bias-update", "fuse-update", "sparse-input"));
  EXPECT_TRUE(records[1].ran && records[1].changed);
  EXPECT_TRUE(records[2].ran && !records[2].changed);
  EXPECT_EQ(records[3].nodes_before, 3);
  EXPECT_EQ(records[3].nodes_after, 2);
  EXPECT_EQ(records[1].before, PrintGraph(SmallGraph()));
  EXPECT_EQ(records[1].after, records[2].before);
  EXPECT_EQ(records.back().after, PrintGraph(graph));
}

TEST(PipelineTest, SkipsADisabledPass) {
  Graph graph = SmallGraph();
  const std::string before = PrintGraph(graph);
  ASSERT_OK_AND_ASSIGN(const auto records,
                       RunPipeline(graph, {.disabled = {"simplify"}}));
  EXPECT_FALSE(records[1].ran);
  EXPECT_EQ(PrintGraph(graph), before);
}

TEST(PipelineTest, NamesTheNearestPassForAnUnknownName) {
  Graph graph = SmallGraph();
  EXPECT_THAT(
      RunPipeline(graph, {.disabled = {"fuse-updates"}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("got 'fuse-updates'; the nearest is fuse-update")));
  EXPECT_THAT(RunPipeline(graph, {.disabled = {"fuse-bias-updat"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the nearest is fuse-bias-update")));
}

TEST(PipelineTest, DumpsEachPassThatChangedByItsNumber) {
  Graph graph = SmallGraph();
  const std::string dir = FreshDir();
  ASSERT_OK(RunPipeline(graph, {.dump_dir = dir}));
  EXPECT_THAT(FilesIn(dir), ElementsAre("02-simplify.txt", "04-dce.txt"));
  EXPECT_EQ(ReadFile(dir + "/04-dce.txt"), PrintGraph(graph));
}

TEST(PipelineTest, DumpsRefusalsAsCommentsThatParse) {
  Graph graph = MakeMlp({.update = OpKind::kMomentumUpdate});
  const std::string dir = FreshDir();
  ASSERT_OK(RunPipeline(graph, {.dump_dir = dir}));
  const std::string text = ReadFile(dir + "/05-fold-learning-rate.txt");
  EXPECT_THAT(text, HasSubstr("# fold %"));
  EXPECT_OK(ParseGraph(text));
  const std::string fused = ReadFile(dir + "/10-fuse-bias-activation.txt");
  EXPECT_THAT(fused, HasSubstr("# matmul + add_bias + relu"));
  EXPECT_OK(ParseGraph(fused));
}

TEST(PipelineTest, SaysWhichDumpCannotBeWritten) {
  Graph graph = SmallGraph();
  EXPECT_THAT(RunPipeline(graph, {.dump_dir = FreshDir() + "/missing"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("missing/02-simplify.txt")));
}

TEST(PipelineTest, NamesThePassThatBreaksTheGraph) {
  const Pass breaks = {"break",
                       [](PassContext& context) -> absl::StatusOr<bool> {
                         context.graph.nodes()[2]->types = {F32({7})};
                         return true;
                       },
                       false};
  Graph graph = SmallGraph();
  EXPECT_THAT(RunPipeline(graph, {}, {breaks}),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("after pass break: graph: scale %1")));
}

TEST(PipelineTest, CatchesAPassThatHidesAChange) {
  const Pass hides = {"hide",
                      [](PassContext& context) -> absl::StatusOr<bool> {
                        context.graph.nodes()[2]->attrs = ScaleAttrs{4};
                        return false;
                      },
                      false};
  Graph graph = SmallGraph();
  EXPECT_THAT(RunPipeline(graph, {.check_reports = true}, {hides}),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("after pass hide: reports no change")));
}

TEST(PipelineTest, CatchesAPassThatReportsAChangeItDidNotMake) {
  const Pass boasts = {
      "boast", [](PassContext&) -> absl::StatusOr<bool> { return true; },
      false};
  Graph graph = SmallGraph();
  EXPECT_THAT(RunPipeline(graph, {.check_reports = true}, {boasts}),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("after pass boast: reports a change")));
}

}  // namespace
}  // namespace onestep
