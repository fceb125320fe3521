// SPDX-License-Identifier: Apache-2.0
// Fused equals unfused equals the oracle, on every kernel set, over random
// train steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

constexpr int kGraphs = 150;

// fp32 steps of small nets with values of order one: sums of at most nine
// products, five layers deep, forward and back. Relative to the largest
// value, as gelu and dying relus leave gradients that are all rounding.
void ExpectNear(const TensorMap& got, const TensorMap& want) {
  for (const auto& [name, values] : want) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double bound = 2e-5 * std::max(1.0, std::abs(values[i]));
      ASSERT_NEAR(got.at(name)[i], values[i], bound) << name << "[" << i << "]";
    }
  }
}

TEST(RandomChainTest, FusedEqualsUnfusedEqualsTheOracle) {
  MlpRandom random(7);
  for (int i = 0; i < kGraphs; ++i) {
    RandomMlp mlp = MakeRandomMlp(random);
    mlp.bindings = RoundToLeaves(mlp.graph, mlp.bindings);
    SCOPED_TRACE(absl::StrCat("graph ", i, "\n", PrintGraph(mlp.graph)));
    ASSERT_OK_AND_ASSIGN(const TensorMap want,
                         Evaluate(mlp.graph, mlp.bindings));
    for (bool fuse : {false, true}) {
      Graph graph = mlp.graph.Clone();
      PipelineOptions options;
      options.fuse = fuse;
      ASSERT_OK(RunPipeline(graph, options));
      for (KernelChoice choice : {KernelChoice::kOnednn, KernelChoice::kLoops,
                                  KernelChoice::kBySize}) {
        SCOPED_TRACE(absl::StrCat("fuse ", fuse, " kernels ",
                                  static_cast<int>(choice), "\n",
                                  PrintGraph(graph)));
        ASSERT_OK_AND_ASSIGN(const TensorMap got,
                             RunChain(graph, mlp.bindings, choice, 1 + i % 2));
        ExpectNear(got, want);
        if (HasFailure()) return;
      }
    }
  }
}

bool HasSparseProduct(const Graph& graph) {
  return std::any_of(
      graph.nodes().begin(), graph.nodes().end(),
      [](const auto& node) { return node->kind == OpKind::kSparseMatMul; });
}

TEST(RandomChainTest, SparseEqualsTheOracle) {
  MlpRandom random(11);
  int sparse_graphs = 0;
  for (int i = 0; i < kGraphs; ++i) {
    RandomMlp mlp = MakeRandomMlp(random);
    for (double& pixel : mlp.bindings.at("images")) {
      if (!random.OneIn(3)) pixel = 0;
    }
    mlp.bindings = RoundToLeaves(mlp.graph, mlp.bindings);
    ASSERT_OK_AND_ASSIGN(const TensorMap want,
                         Evaluate(mlp.graph, mlp.bindings));
    ASSERT_OK(RunPipeline(mlp.graph, {.sparse = {.nonzeros = 1}}));
    SCOPED_TRACE(absl::StrCat("graph ", i, "\n", PrintGraph(mlp.graph)));
    sparse_graphs += HasSparseProduct(mlp.graph);
    ASSERT_OK_AND_ASSIGN(const TensorMap exact,
                         Evaluate(mlp.graph, mlp.bindings));
    ExpectNear(exact, want);
    ASSERT_OK_AND_ASSIGN(
        const TensorMap got,
        RunChain(mlp.graph, mlp.bindings, KernelChoice::kBySize, 1 + i % 2));
    ExpectNear(got, want);
    if (HasFailure()) return;
  }
  // The others add the input to the first layer's result.
  EXPECT_GT(sparse_graphs, kGraphs * 3 / 4);
}

}  // namespace
}  // namespace onestep
