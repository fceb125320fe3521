// SPDX-License-Identifier: Apache-2.0
// Many models: what they differ in, and how a team shares them out.
#include "tests/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/text.h"
#include "compiler/passes/partition.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/passes/mlp_graph.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

constexpr char kUpdates[] = R"(graph {
  %w = param 3xf32[2]
  %v = param 3xf32[2]
  %u = param 3xf32[2]
  %m = param 3xf32[2]
  %s = param 3xf32[2]
  %x = param 3xf32[2]
  %dw = input 3xf32[2]
  %lr = input 3xf32[]
  %mu = input 3xf32[]
  %wd = input 3xf32[]
  %step = input f32[]
  %0 = sgd_update(%w, %dw, %lr, %wd) : 3xf32[2]
  %1:2 = momentum_update(%u, %dw, %v, %lr, %mu, %wd) : 3xf32[2], 3xf32[2]
  %2:3 = adam_update(%x, %dw, %m, %s, %lr, %step, %wd) : 3xf32[2], 3xf32[2], 3xf32[2]
  update w = %0
  update u = %1
  update v = %1#1
  update x = %2
  update m = %2#1
  update s = %2#2
})";

TensorMap UpdateBindings(double k) {
  return {{"w", {1, 2}},      {"v", {3, 4}},     {"u", {5, 6}},
          {"m", {0.5, 7}},    {"s", {0.25, 8}},  {"x", {-1, 9}},
          {"dw", {2, k}},     {"lr", {0.1 * k}}, {"mu", {0.5 + 0.1 * k}},
          {"wd", {0.01 * k}}, {"step", {2}}};
}

TEST(ModelsTest, EveryModelHasItsOwnHyperParameters) {
  ASSERT_OK_AND_ASSIGN(const Graph all, ParseGraph(kUpdates));
  ASSERT_OK_AND_ASSIGN(const Graph alone, ParseGraph(absl::StrReplaceAll(
                                              kUpdates, {{"3xf32", "f32"}})));
  std::vector<TensorMap> models;
  for (const double k : {1, 2, 3}) {
    models.push_back(RoundToLeaves(alone, UpdateBindings(k)));
  }
  ASSERT_OK_AND_ASSIGN(
      const TensorMap got,
      RunChain(all, Interleave(all, models), KernelChoice::kLoops, 1));
  for (size_t k = 0; k < models.size(); ++k) {
    ASSERT_OK_AND_ASSIGN(const TensorMap want,
                         RunChain(alone, models[k], KernelChoice::kLoops, 1));
    ASSERT_NO_FATAL_FAILURE(ExpectModel(got, models.size(), k, want));
  }
  EXPECT_NE(got.at("x")[0], got.at("x")[1]);
}

// So that a trial whose decay is an operand is the one whose decay is not.
TEST(ModelsTest, AnOperandMeansWhatTheAttributeDoes) {
  ASSERT_OK_AND_ASSIGN(const Graph operand, ParseGraph(absl::StrReplaceAll(
                                                kUpdates, {{"3xf32", "f32"}})));
  ASSERT_OK_AND_ASSIGN(
      const Graph attribute,
      ParseGraph(absl::StrReplaceAll(
          kUpdates, {{"3xf32", "f32"},
                     {", %lr, %wd)", ", %lr) {weight_decay=0.25}"},
                     {", %mu, %wd)", ") {momentum=0.75, weight_decay=0.25}"},
                     {", %step, %wd)", ", %step) {weight_decay=0.25}"}})));
  TensorMap bindings = UpdateBindings(2);
  bindings["mu"] = {0.75};
  bindings["wd"] = {0.25};
  ASSERT_OK_AND_ASSIGN(const TensorMap got,
                       RunChain(operand, bindings, KernelChoice::kLoops, 1));
  ASSERT_OK_AND_ASSIGN(const TensorMap want,
                       RunChain(attribute, bindings, KernelChoice::kLoops, 1));
  EXPECT_EQ(got, want);
}

Graph FusedModels(int64_t models) {
  MlpSpec spec;
  spec.widths = {8, 16, 4};
  spec.batch = 8;
  Graph graph = MakeMlp(spec);
  PipelineOptions options;
  options.vectorize = {models, {"lr"}};
  EXPECT_OK(RunPipeline(graph, options).status());
  return graph;
}

TEST(ModelsTest, ATeamGivesEachWorkerARangeOfTheModels) {
  ASSERT_OK_AND_ASSIGN(Partition partition, PartitionGraph(FusedModels(5), 2));
  EXPECT_EQ(partition.homes.at("w1"), Placement::Models());
  EXPECT_THAT(partition.ToString(),
              HasSubstr("5xf32[8,16]      models       2xf32[8,16] of 0"));
  EXPECT_GT(partition.us, 0);
  ASSERT_OK_AND_ASSIGN(const std::vector<Graph> graphs, LocalGraphs(partition));
  EXPECT_EQ(graphs[0].FindLeaf("w1")->models(), 2);
  EXPECT_EQ(graphs[1].FindLeaf("w1")->models(), 3);
  EXPECT_EQ(graphs[1].FindLeaf("lr")->models(), 3);
  EXPECT_EQ(graphs[1].FindLeaf("images")->models(), 0);
  EXPECT_EQ(CountExchanges(graphs[0]), 0);
}

TEST(ModelsTest, ATeamOfMoreWorkersThanModelsIsRefused) {
  EXPECT_THAT(PartitionGraph(FusedModels(2), 3).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("got 2 models and 3 workers")));
}

// An op whose row of ops.def does not say that its loop takes many models gets
// that of one model for each, never the one over further columns.
TEST(ModelsTest, OnlyOpsThatSaySoLowerAllModelsAtOnce) {
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %x = input 3xf32[2,5]
    %0 = softmax(%x) : 3xf32[2,5]
    %1 = add(%x, %0) : 3xf32[2,5]
    result y = %1
  })"));
  ASSERT_FALSE(GetOpDef(OpKind::kSoftmax).Has(kModels));
  ASSERT_TRUE(GetOpDef(OpKind::kAdd).Has(kModels));
  ASSERT_OK_AND_ASSIGN(const auto chain,
                       LowerToChain(graph, KernelChoice::kLoops, 1));
  EXPECT_THAT(chain->steps()[0].implementation,
              HasSubstr("one model at a time"));
  EXPECT_THAT(chain->steps()[1].implementation,
              testing::Not(HasSubstr("one model at a time")));
}

TEST(ModelsTest, TheirNodesUseNoLibrary) {
  TeamOptions options;
  options.workers = 2;
  TeamReport report;
  ASSERT_OK_AND_ASSIGN(const auto team,
                       LowerToTeam(FusedModels(5), options, report));
  EXPECT_THAT(team->lowering(), HasSubstr("0 exchanges; own loops"));
  Graph graph = FusedModels(5);
  ASSERT_OK_AND_ASSIGN(const auto chain,
                       LowerToChain(graph, KernelChoice::kOnednn, 1));
  for (const StepInfo& step : chain->steps()) {
    EXPECT_FALSE(step.library && step.results[0].models > 0) << step.label;
  }
}

}  // namespace
}  // namespace onestep
