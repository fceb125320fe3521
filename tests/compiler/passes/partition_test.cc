// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/passes/mlp_graph.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/oracle.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::HasSubstr;

Graph FusedMlp(std::vector<int64_t> widths, int64_t batch) {
  MlpSpec spec;
  spec.widths = std::move(widths);
  spec.batch = batch;
  spec.table_rows = 60000;
  Graph graph = MakeMlp(spec);
  EXPECT_OK(RunPipeline(graph, {}));
  return graph;
}

struct Plan {
  Partition partition;
  int exchanges = 0;
};

Plan PlanOf(const Graph& graph, int workers) {
  Plan plan;
  plan.partition = *PartitionGraph(graph, workers);
  const std::vector<Graph> graphs = *LocalGraphs(plan.partition);
  EXPECT_EQ(std::ssize(graphs), workers);
  plan.exchanges = CountExchanges(graphs[0]);
  return plan;
}

// A worker's part is cut out by `slice`, which takes one or two axes.
TEST(PartitionTest, AValueOfThreeAxesStaysWhole) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(graph {
    %x = input f32[4,5,6]
    %w = param f32[4,5,6]
    %0 = mul(%x, %w) : f32[4,5,6]
    %1 = add(%w, %0) : f32[4,5,6]
    update w = %1
  })"));
  const Plan plan = PlanOf(graph, 2);
  EXPECT_EQ(plan.partition.homes.at("w"), Placement::Replicated());
  EXPECT_EQ(plan.exchanges, 0);
}

TEST(PartitionTest, OneHiddenLayerNeedsOneExchange) {
  for (const int64_t batch : {1, 32, 128}) {
    for (const int workers : {2, 3, 8}) {
      // Then the loss of a third of the rows is worth a second barrier.
      if (batch == 128 && workers > 2) continue;
      SCOPED_TRACE(absl::StrCat(batch, " rows, ", workers, " workers"));
      const Plan plan = PlanOf(FusedMlp({784, 128, 10}, batch), workers);
      EXPECT_EQ(plan.exchanges, 1);
      EXPECT_EQ(plan.partition.homes.at("w1"), Placement::Split(1));
      EXPECT_EQ(plan.partition.homes.at("b1"), Placement::Split(0));
      EXPECT_EQ(plan.partition.homes.at("w2"), Placement::Split(0));
    }
  }
}

TEST(PartitionTest, ABatchInTilesNeedsOneExchangeEach) {
  const Plan plan = PlanOf(FusedMlp({784, 128, 10}, 512), 2);
  EXPECT_OK(plan.partition.not_tiled);
  EXPECT_EQ(plan.partition.homes.at("w1"), Placement::Split(1));
  ASSERT_GT(plan.partition.tile_rows, 0);
  EXPECT_EQ(plan.exchanges, 512 / plan.partition.tile_rows);
}

TEST(PartitionTest, LayersPairUp) {
  EXPECT_LE(PlanOf(FusedMlp({784, 128, 128, 10}, 32), 2).exchanges, 2);
  // One per pair of layers and direction: the first pair has no gradient of
  // its input.
  EXPECT_LE(PlanOf(FusedMlp({784, 256, 256, 256, 10}, 32), 2).exchanges, 3);
  EXPECT_LE(
      PlanOf(FusedMlp({784, 256, 256, 256, 256, 256, 10}, 32), 2).exchanges, 5);
}

TEST(PartitionTest, OneWorkerExchangesNothing) {
  EXPECT_EQ(PlanOf(FusedMlp({784, 128, 10}, 32), 1).exchanges, 0);
}

TEST(PartitionTest, LargeBatchesAreSplitByRowsAndCutInTiles) {
  const Plan plan = PlanOf(FusedMlp({784, 128, 10}, 8192), 2);
  EXPECT_EQ(plan.partition.homes.at("w1"), Placement::Replicated());
  EXPECT_GE(plan.partition.tile_rows, 32);
  EXPECT_EQ(plan.exchanges, 1);  // of the gradients
}

TEST(PartitionTest, ATableIsWorthNoWorkersThatAreMoreThanItsRows) {
  const Plan plan = PlanOf(FusedMlp({3, 1, 2}, 1), 4);
  EXPECT_EQ(plan.exchanges, 0);
  EXPECT_EQ(plan.partition.homes.at("w1"), Placement::Replicated());
}

TEST(PartitionTest, SaysWhereEveryValueIs) {
  const Plan plan = PlanOf(FusedMlp({784, 128, 10}, 32), 2);
  const std::string text = plan.partition.ToString();
  EXPECT_THAT(text, HasSubstr("split(1)"));
  EXPECT_THAT(text, HasSubstr("f32[784,64] of 0"));
  EXPECT_THAT(text, HasSubstr("partial"));
}

void ExpectSame(const TensorMap& want, const TensorMap& got) {
  for (const auto& [name, values] : want) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double bound = 1e-12 * std::max(1.0, std::abs(values[i]));
      ASSERT_NEAR(values[i], got.at(name)[i], bound) << name << "[" << i << "]";
    }
  }
}

// By the oracle: tiles need no workers.
TEST(TileRowsTest, KeepsTheValuesOfRandomGraphs) {
  MlpRandom random(3);
  int tiled = 0;
  for (int i = 0; i < 200; ++i) {
    const RandomMlp mlp = MakeRandomMlp(random);
    SCOPED_TRACE(absl::StrCat("graph ", i, "\n", PrintGraph(mlp.graph)));
    ASSERT_OK_AND_ASSIGN(const TensorMap want,
                         Evaluate(mlp.graph, mlp.bindings));
    Graph graph = mlp.graph.Clone();
    if (random.OneIn(2)) {
      ASSERT_OK(RunPipeline(graph, {}));
    }
    UnfuseEpilogues(graph);
    UnfuseUpdates(graph);
    ASSERT_OK(graph.Verify());
    ASSERT_OK_AND_ASSIGN(const TensorMap unfused,
                         Evaluate(graph, mlp.bindings));
    ExpectSame(want, unfused);
    const int64_t tile_rows = 1 + random.Below(3);
    const std::string before = PrintGraph(graph);
    const absl::Status status = TileRows(graph, tile_rows);
    if (!status.ok()) {
      EXPECT_EQ(PrintGraph(graph), before);
      continue;
    }
    ++tiled;
    SCOPED_TRACE(PrintGraph(graph));
    ASSERT_OK(graph.Verify());
    ASSERT_OK_AND_ASSIGN(const TensorMap got, Evaluate(graph, mlp.bindings));
    ExpectSame(want, got);
    if (HasFailure()) return;
  }
  EXPECT_GT(tiled, 60);
}

TEST(TileRowsTest, SaysWhatStandsAgainstIt) {
  MlpSpec spec;
  spec.extra = ExtraUse::kHidden;  // wanted for all rows at once
  Graph graph = MakeMlp(spec);
  EXPECT_THAT(TileRows(graph, 2), StatusIs(absl::StatusCode::kUnimplemented,
                                           HasSubstr("tile-rows: output")));
}

}  // namespace
}  // namespace onestep
