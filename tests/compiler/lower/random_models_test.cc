// SPDX-License-Identifier: Apache-2.0
// Many models in one step: each has the bits of its own graph run alone, over
// random train steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/models.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kGraphs = 15;  // each takes seconds there
#else
constexpr int kGraphs = 40;
#endif
constexpr int kSteps = 3;

// Params and the learning rate drawn anew.
TensorMap DrawModel(const Graph& graph, TensorMap bindings, MlpRandom& random) {
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf)) continue;
    const bool rate = node->name() == "lr";
    if (node->kind != OpKind::kParam && !rate) continue;
    const bool positive = rate || absl::StartsWith(node->name(), "v_");
    for (double& x : bindings.at(node->name())) {
      x = positive ? std::abs(random.Uniform()) : random.Uniform();
    }
  }
  return RoundToLeaves(graph, std::move(bindings));
}

Graph Vectorized(const Graph& graph, PipelineOptions options, int64_t models) {
  Graph all = graph.Clone();
  options.vectorize = {models, {"lr"}};
  EXPECT_OK(RunPipeline(all, options).status());
  return all;
}

struct Trial {
  RandomMlp mlp;
  PipelineOptions pipeline;
  Graph solo, all;  // after the passes
  std::vector<TensorMap> models;
};

Trial MakeTrial(MlpRandom& random) {
  constexpr int64_t kModels[] = {1, 2, 5, 16, 17};
  Trial trial;
  trial.mlp = MakeRandomMlp(random);
  trial.pipeline.fuse = random.OneIn(2);
  if (random.OneIn(3)) trial.pipeline.sparse.nonzeros = 1;
  trial.solo = trial.mlp.graph.Clone();
  EXPECT_OK(RunPipeline(trial.solo, trial.pipeline).status());
  const int64_t models = kModels[random.Below(5)];
  trial.all = Vectorized(trial.mlp.graph, trial.pipeline, models);
  for (int64_t k = 0; k < models; ++k) {
    trial.models.push_back(
        DrawModel(trial.mlp.graph, trial.mlp.bindings, random));
  }
  return trial;
}

void ExpectModelsAlone(const Trial& trial, Executable& all, Executable& solo) {
  ASSERT_OK_AND_ASSIGN(
      const TensorMap got,
      RunExecutable(all, trial.all, Interleave(trial.all, trial.models),
                    kSteps));
  for (size_t k = 0; k < trial.models.size(); ++k) {
    ASSERT_OK_AND_ASSIGN(
        const TensorMap want,
        RunExecutable(solo, trial.solo, trial.models[k], kSteps));
    ASSERT_NO_FATAL_FAILURE(ExpectModel(got, trial.models.size(), k, want));
  }
}

TEST(RandomModelsTest, AChainGivesEveryModelTheBitsItHasAlone) {
  MlpRandom random(21);
  for (int i = 0; i < kGraphs; ++i) {
    Trial trial = MakeTrial(random);
    SCOPED_TRACE(absl::StrCat("graph ", i, "\n", PrintGraph(trial.all)));
    Graph copy = trial.solo.Clone();
    ASSERT_OK_AND_ASSIGN(auto solo,
                         LowerToChain(copy, KernelChoice::kLoops, 1));
    for (const int threads : {1, 2}) {
      Graph all = trial.all.Clone();
      ASSERT_OK_AND_ASSIGN(auto chain,
                           LowerToChain(all, KernelChoice::kBySize, threads));
      EXPECT_TRUE(chain->models_innermost());
      ASSERT_NO_FATAL_FAILURE(ExpectModelsAlone(trial, *chain, *solo));
    }
  }
}

TEST(RandomModelsTest, ATeamGivesEveryModelTheBitsItHasAlone) {
  MlpRandom random(22);
  int64_t tiled = 0, spread = 0, refused = 0;
  for (int i = 0; i < kGraphs; ++i) {
    Trial trial = MakeTrial(random);
    SCOPED_TRACE(absl::StrCat("graph ", i, "\n", PrintGraph(trial.all)));
    TeamOptions options;
    options.micro_gemm = false;
    if (random.OneIn(3)) options.partition.tile_bytes = 8;
    TeamReport report;
    ASSERT_OK_AND_ASSIGN(const auto solo,
                         LowerToTeam(trial.solo, options, report));
    tiled += report.partition.tile_rows > 0;
    options.micro_gemm = true;
    const int most = std::min<int>(3, static_cast<int>(trial.models.size()));
    for (options.workers = 1; options.workers <= most; ++options.workers) {
      const auto team = LowerToTeam(trial.all, options, report);
      if (!team.ok()) {  // a tensor of each model is wanted
        EXPECT_NE(trial.mlp.spec.extra, ExtraUse::kNone) << team.status();
        EXPECT_THAT(team.status(),
                    StatusIs(absl::StatusCode::kUnimplemented,
                             HasSubstr("extra: want one value of each")));
        ++refused;
        continue;
      }
      EXPECT_EQ(report.exchanges, 0);
      spread += options.workers > 1;
      ASSERT_NO_FATAL_FAILURE(ExpectModelsAlone(trial, **team, *solo));
    }
  }
  EXPECT_GT(tiled, kGraphs / 8);
  EXPECT_GT(spread, kGraphs / 2);
  EXPECT_GT(refused, 0);
}

TEST(RandomModelsTest, AModelThatDivergesChangesNoBitOfTheOthers) {
  MlpRandom random(23);
  for (int i = 0; i < kGraphs / 4; ++i) {
    Trial trial = MakeTrial(random);
    const size_t models = trial.models.size();
    if (models == 1) continue;
    TeamReport report;
    ASSERT_OK_AND_ASSIGN(const auto team, LowerToTeam(trial.all, {}, report));
    ASSERT_OK_AND_ASSIGN(
        const TensorMap calm,
        RunExecutable(*team, trial.all, Interleave(trial.all, trial.models),
                      kSteps));
    const size_t wild =
        static_cast<size_t>(random.Below(static_cast<int64_t>(models)));
    trial.models[wild].at("lr")[0] = 1e30;
    ASSERT_OK_AND_ASSIGN(
        const TensorMap got,
        RunExecutable(*team, trial.all, Interleave(trial.all, trial.models),
                      kSteps));
    for (const auto& [name, values] : calm) {
      if (values.size() % models != 0) continue;  // shared
      for (size_t j = 0; j < values.size(); ++j) {
        if (j % models == wild) continue;
        ASSERT_PRED2(SameBits, got.at(name)[j], values[j]) << name << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace onestep
