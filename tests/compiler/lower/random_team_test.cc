// SPDX-License-Identifier: Apache-2.0
// A team of any size computes what the oracle does, over random train steps
// and random placements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kGraphs = 12;  // each takes seconds there
#else
constexpr int kGraphs = 60;
#endif

// As for the chain: see random_chain_test.cc.
void ExpectNear(const TensorMap& got, const TensorMap& want) {
  for (const auto& [name, values] : want) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double bound = 2e-5 * std::max(1.0, std::abs(values[i]));
      ASSERT_NEAR(got.at(name)[i], values[i], bound) << name << "[" << i << "]";
    }
  }
}

bool HasSparseProduct(const Graph& graph) {
  return std::any_of(
      graph.nodes().begin(), graph.nodes().end(),
      [](const auto& node) { return node->kind == OpKind::kSparseMatMul; });
}

TEST(RandomTeamTest, EqualsTheOracleWhateverThePlacement) {
  MlpRandom random(11);
  std::set<int> exchanges;
  int64_t tiled = 0, sparse = 0;
  for (int i = 0; i < kGraphs; ++i) {
    RandomMlp mlp = MakeRandomMlp(random);
    mlp.bindings = RoundToLeaves(mlp.graph, mlp.bindings);
    for (double& pixel : mlp.bindings["images"]) {
      if (random.OneIn(2)) pixel = 0;
    }
    SCOPED_TRACE(absl::StrCat("graph ", i, "\n", PrintGraph(mlp.graph)));
    ASSERT_OK_AND_ASSIGN(const TensorMap want,
                         Evaluate(mlp.graph, mlp.bindings));
    for (const bool fuse : {false, true}) {
      Graph graph = mlp.graph.Clone();
      PipelineOptions pipeline;
      pipeline.fuse = fuse;
      if (random.OneIn(2)) pipeline.sparse.nonzeros = 1;
      ASSERT_OK(RunPipeline(graph, pipeline));
      sparse += HasSparseProduct(graph);
      for (const int workers : {1, 2, 3}) {
        for (const uint64_t shuffle : {0, 1 + 2 * i, 2 + 2 * i}) {
          TeamOptions options;
          options.workers = workers;
          options.micro_gemm = random.OneIn(2);
          options.partition.shuffle = shuffle;
          if (random.OneIn(2)) options.partition.tile_bytes = 8;
          TeamReport team;
          const auto lowered = LowerToTeam(graph, options, team);
          ASSERT_OK(lowered.status())
              << workers << " workers, shuffle " << shuffle;
          Executable& executable = **lowered;
          SCOPED_TRACE(absl::StrCat("fuse ", fuse, " shuffle ", shuffle, " ",
                                    executable.lowering(), "\n",
                                    PrintGraph(team.worker)));
          exchanges.insert(team.exchanges);
          tiled += team.partition.tile_rows > 0;
          ASSERT_OK_AND_ASSIGN(const TensorMap got,
                               RunExecutable(executable, graph, mlp.bindings));
          ExpectNear(got, want);
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(exchanges.size(), 4u);
  EXPECT_GT(tiled, kGraphs);
  EXPECT_GT(sparse, kGraphs / 5);
}

}  // namespace
}  // namespace onestep
