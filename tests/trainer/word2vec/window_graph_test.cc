// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/window_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "tests/oracle.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Rows are named more than once, and the last context and output are masked.
TensorMap RandomBindings(const Graph& graph, bool exact) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const int64_t rows = std::min(graph.FindLeaf("in")->types[0].dims[0],
                                graph.FindLeaf("out")->types[0].dims[0]);
  TensorMap bindings;
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf)) continue;
    std::vector<double>& values = bindings[node->name()];
    values.resize(node->types[0].num_elements());
    for (double& v : values) {
      v = node->types[0].dtype == DType::kI32
              ? static_cast<double>(random() % rows)
              : uniform(random);
    }
  }
  bindings["lr"] = {0.5};
  for (const char* name : {"contexts", "outputs"}) {
    std::vector<double>& ids = bindings[name];
    ids.back() = ids.front();
  }
  for (const char* name : {"context_mask", "output_weights"}) {
    const auto weights = bindings.find(name);
    if (weights == bindings.end()) continue;
    for (double& w : weights->second) w = 1 + std::round(w);
    if (weights->second.size() > 1) weights->second.back() = 0;
  }
  if (exact) bindings["context_spread"] = bindings["context_mean"];
  return RoundToLeaves(graph, std::move(bindings));
}

WindowSpec SpecOf(bool cbow, bool hs) {
  WindowSpec spec;
  spec.cbow = cbow;
  spec.hs = hs;
  spec.in_rows = 5;
  spec.out_rows = 4;
  spec.cols = 3;
  spec.contexts = 7;
  spec.outputs = 6;
  return spec;
}

absl::StatusOr<TensorMap> RunOn(const Graph& graph, const TensorMap& bindings,
                                const CompileOptions& options) {
  ASSIGN_OR_RETURN(const Compiled compiled, Compile(graph.Clone(), options));
  return RunExecutable(*compiled.executable, graph, bindings);
}

class WindowGraphTest : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  bool cbow() const { return std::get<0>(GetParam()); }
  bool hs() const { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Models, WindowGraphTest,
                         testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& info) {
                           return absl::StrCat(
                               std::get<0>(info.param) ? "Cbow" : "SkipGram",
                               std::get<1>(info.param) ? "Hs" : "");
                         });

// What a step takes from the tables is lr times the derivative of its loss; of
// cbow where the error is spread as the mean is taken.
TEST_P(WindowGraphTest, AStepDescendsTheGradientOfItsLoss) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       BuildWindowStep(SpecOf(cbow(), hs())));
  const TensorMap bindings = RandomBindings(graph, /*exact=*/true);
  const double lr = bindings.at("lr")[0];
  for (bool fuse : {false, true}) {
    CompileOptions options;
    options.fuse = fuse;
    ASSERT_OK_AND_ASSIGN(const TensorMap after,
                         RunOn(graph, bindings, options));
    for (const std::string name : {"in", "out"}) {
      TensorMap at = bindings;
      const std::vector<double>& before = bindings.at(name);
      for (size_t i = 0; i < before.size(); ++i) {
        constexpr double kStep = 1e-5;
        double loss[2];
        for (int side : {0, 1}) {
          at[name][i] = before[i] + (side == 0 ? -kStep : kStep);
          ASSERT_OK_AND_ASSIGN(const TensorMap outputs, Evaluate(graph, at));
          loss[side] = outputs.at("loss")[0];
        }
        at[name][i] = before[i];
        const double slope = (loss[1] - loss[0]) / (2 * kStep);
        // Rows are kept in float32.
        EXPECT_NEAR(after.at(name)[i], before[i] - lr * slope, 1e-6)
            << name << " " << i;
      }
    }
  }
}

TEST_P(WindowGraphTest, EveryWayToRunItGivesTheReferencesUpdate) {
  for (const int64_t size : {1, 2, 5, 16, 33}) {
    WindowSpec spec = SpecOf(cbow(), hs());
    spec.in_rows = size + 2;
    spec.cols = size;
    spec.contexts = 1 + size % 11;
    spec.outputs = 1 + size % 7;
    ASSERT_OK_AND_ASSIGN(const Graph graph, BuildWindowStep(spec));
    const TensorMap bindings = RandomBindings(graph, /*exact=*/false);
    ASSERT_OK_AND_ASSIGN(const TensorMap want, Evaluate(graph, bindings));
    CompileOptions fused, sparse, textbook;
    sparse.disabled_passes = {"fuse-sparse-window"};
    textbook.fuse = false;
    for (const CompileOptions& options : {fused, sparse, textbook}) {
      ASSERT_OK_AND_ASSIGN(const TensorMap got,
                           RunOn(graph, bindings, options));
      ASSERT_EQ(got.size(), 3u);
      for (const auto& [name, values] : want) {
        // fp32 sums of up to 33 products.
        EXPECT_LE(Nmse(got.at(name), values), 1e-12) << name << " " << size;
      }
    }
  }
}

// By the names of its ops, each once.
std::vector<std::string> OpsOf(const Graph& graph) {
  std::vector<std::string> ops;
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf)) ops.push_back(node->op());
  }
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  return ops;
}

TEST_P(WindowGraphTest, ThePassesMakeAStepOneOp) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       BuildWindowStep(SpecOf(cbow(), hs())));
  ASSERT_OK_AND_ASSIGN(const Compiled compiled, Compile(graph.Clone(), {}));
  EXPECT_THAT(OpsOf(compiled.graph),
              ElementsAre(cbow() ? "cbow_window" : "sgns_window"));
  for (const PassRecord& pass : compiled.passes) {
    EXPECT_THAT(pass.refusals, IsEmpty()) << pass.name;
  }
}

TEST_P(WindowGraphTest, WithoutTheWholeWindowTablesAreStillOnlyTouchedByRows) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       BuildWindowStep(SpecOf(cbow(), hs())));
  CompileOptions options;
  options.disabled_passes = {"fuse-sparse-window"};
  ASSERT_OK_AND_ASSIGN(const Compiled compiled,
                       Compile(graph.Clone(), options));
  std::vector<std::string> ops = OpsOf(compiled.graph);
  if (cbow()) ops.erase(ops.begin() + 1);  // the constant mask
  EXPECT_THAT(ops,
              ElementsAre("block_matmul", "gather_rows", "mul_scalar",
                          "scatter_add", "sigmoid_bce", "sigmoid_bce_grad"));
  for (const StepInfo& step : compiled.executable->steps()) {
    EXPECT_NE(step.op, "copy");
    EXPECT_TRUE(step.op != "scatter_add" || step.in_place);
  }
}

}  // namespace
}  // namespace onestep
