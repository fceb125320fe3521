// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::HasSubstr;

Graph Parse(const std::string& body) {
  absl::StatusOr<Graph> graph = ParseGraph("graph {\n" + body + "}\n");
  EXPECT_OK(graph);
  return *std::move(graph);
}

Value NodeValue(const Graph& graph, int index, int result = 0) {
  return graph.nodes()[index]->result(result);
}

TEST(MemoryPlanTest, AnUpdateIsWrittenToItsParam) {
  const Graph g = Parse(R"(
    %w = param f32[4,4]
    %d = input f32[4,4]
    %lr = input f32[]
    %0 = sgd_update(%w, %d, %lr) : f32[4,4]
    update w = %0
  )");
  const MemoryPlan plan = PlanMemory(g);
  EXPECT_EQ(plan.SlotOf(NodeValue(g, 3)), plan.SlotOf(NodeValue(g, 0)));
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.arena_bytes, 0);
}

TEST(MemoryPlanTest, AnUpdateBeforeAReaderOfTheOldValueIsCopiedAtTheEnd) {
  const Graph g = Parse(R"(
    %w = param f32[4,4]
    %d = input f32[4,4]
    %lr = input f32[]
    %0 = sgd_update(%w, %d, %lr) : f32[4,4]
    %1 = matmul(%d, %w) : f32[4,4]
    update w = %0
    result y = %1
  )");
  const MemoryPlan plan = PlanMemory(g);
  EXPECT_NE(plan.SlotOf(NodeValue(g, 3)), plan.SlotOf(NodeValue(g, 0)));
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_THAT(plan.ToString(g), HasSubstr("copied at the end: %0 -> %w"));
}

TEST(MemoryPlanTest, AnUpdateThatReadsItsParamAcrossRowsIsNotInPlace) {
  const Graph g = Parse(R"(
    %w = param f32[4,4]
    %d = input f32[4,4]
    %0 = matmul(%w, %d) : f32[4,4]
    update w = %0
  )");
  EXPECT_EQ(PlanMemory(g).copies.size(), 1u);
}

TEST(MemoryPlanTest, TwoParamsThatSwapAreCopiedThroughTheArena) {
  Graph g = Parse(R"(
    %a = param f32[2]
    %b = param f32[2]
    update a = %b
    update b = %a
  )");
  ASSERT_OK_AND_ASSIGN(
      const TensorMap got,
      RunChain(g, {{"a", {1, 2}}, {"b", {3, 4}}}, KernelChoice::kLoops, 1));
  EXPECT_EQ(got.at("a"), (std::vector<double>{3, 4}));
  EXPECT_EQ(got.at("b"), (std::vector<double>{1, 2}));
}

TEST(MemoryPlanTest, ConstantsAndLeavesThatLeaveTheGraphAreCopied) {
  const Graph g = Parse(R"(
    %x = input f32[2]
    %w = param f32[2]
    %0 = constant() {value=3} : f32[2]
    update w = %0
    result c = %0
    result x2 = %x
  )");
  ASSERT_OK_AND_ASSIGN(
      const TensorMap got,
      RunChain(g, {{"x", {1, 2}}, {"w", {5, 6}}}, KernelChoice::kLoops, 1));
  EXPECT_EQ(got.at("w"), (std::vector<double>{3, 3}));
  EXPECT_EQ(got.at("c"), (std::vector<double>{3, 3}));
  EXPECT_EQ(got.at("x2"), (std::vector<double>{1, 2}));
}

TEST(MemoryPlanTest, AnUpdateMayStandBeforeItsParam) {
  const Graph g = Parse(R"(
    %x = input f32[2]
    %0 = scale(%x) {alpha=2} : f32[2]
    %w = param f32[2]
    update w = %0
  )");
  ASSERT_OK_AND_ASSIGN(
      const TensorMap got,
      RunChain(g, {{"x", {1, 2}}, {"w", {5, 6}}}, KernelChoice::kLoops, 1));
  EXPECT_EQ(got.at("w"), (std::vector<double>{2, 4}));
}

TEST(MemoryPlanTest, IntegersThatWouldNeedACopyAreRefused) {
  Graph g = Parse(R"(
    %labels = input i32[2]
    result r = %labels
  )");
  EXPECT_THAT(SeparateOutputs(g),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output r: want f32 to copy, got i32[2]")));
}

TEST(MemoryPlanTest, AnElementwiseOpWritesOverAnOperandThatDies) {
  const Graph g = Parse(R"(
    %x = input f32[100,100]
    %0 = scale(%x) {alpha=2} : f32[100,100]
    %1 = relu(%0) : f32[100,100]
    %2 = tanh(%1) : f32[100,100]
    %3 = reduce_rows(%2) : f32[100]
    result y = %3
  )");
  const MemoryPlan plan = PlanMemory(g);
  EXPECT_EQ(plan.SlotOf(NodeValue(g, 3)), plan.SlotOf(NodeValue(g, 1)));
  EXPECT_LT(plan.arena_bytes, plan.bytes_without_reuse);
}

TEST(MemoryPlanTest, AnOperandThatIsReadLaterIsKept) {
  const Graph g = Parse(R"(
    %x = input f32[8]
    %0 = scale(%x) {alpha=2} : f32[8]
    %1 = relu(%0) : f32[8]
    %2 = add(%0, %1) : f32[8]
    result y = %2
  )");
  const MemoryPlan plan = PlanMemory(g);
  EXPECT_NE(plan.SlotOf(NodeValue(g, 2)), plan.SlotOf(NodeValue(g, 1)));
}

TEST(MemoryPlanTest, ValuesOfDifferentTimesShareBytes) {
  const Graph g = Parse(R"(
    %x = input f32[64,64]
    %0 = matmul(%x, %x) : f32[64,64]
    %1 = matmul(%0, %x) : f32[64,64]
    %2 = matmul(%1, %x) : f32[64,64]
    %3 = matmul(%2, %x) : f32[64,64]
    result y = %3
  )");
  const MemoryPlan plan = PlanMemory(g);
  EXPECT_EQ(plan.bytes_without_reuse, 4 * 64 * 64 * 4);
  EXPECT_EQ(plan.arena_bytes, 2 * 64 * 64 * 4);
}

// Random chains of ops with random fan-in: no two values that live at the
// same time may touch, whatever shares.
TEST(MemoryPlanTest, NoTwoLiveValuesOverlapInRandomGraphs) {
  std::mt19937 rng(3);
  for (int round = 0; round < 200; ++round) {
    Graph g;
    std::vector<Value> values;
    for (int i = 0; i < 3; ++i) {
      values.push_back(g.AddInput(absl::StrCat("x", i), F32({4, 4})));
    }
    const auto pick = [&] { return values[rng() % values.size()]; };
    for (int i = 0; i < 30; ++i) {
      switch (rng() % 3) {
        case 0:
          values.push_back(AddActivation(g, Activation::kRelu, pick()));
          break;
        case 1:
          values.push_back(g.Add(OpKind::kAdd, {pick(), pick()}));
          break;
        default:
          values.push_back(g.Add(OpKind::kMatMul, {pick(), pick()}));
      }
    }
    g.AddResult("y", values.back());
    g.AddResult("z", values[10]);
    const MemoryPlan plan = PlanMemory(g);
    for (size_t a = 0; a < plan.slots.size(); ++a) {
      for (size_t b = a + 1; b < plan.slots.size(); ++b) {
        const Slot &s = plan.slots[a], &t = plan.slots[b];
        if (s.offset < 0 || t.offset < 0) continue;
        const bool together =
            plan.lifetimes[a].first <= plan.lifetimes[b].last &&
            plan.lifetimes[b].first <= plan.lifetimes[a].last;
        const bool touch =
            s.offset < t.offset + t.bytes && t.offset < s.offset + s.bytes;
        ASSERT_FALSE(together && touch) << PrintGraph(g) << plan.ToString(g);
      }
    }
    TensorMap x;
    for (int i = 0; i < 3; ++i) {
      std::vector<double>& v = x[absl::StrCat("x", i)];
      for (int j = 0; j < 16; ++j) v.push_back((rng() % 7) / 16.0 - 0.2);
    }
    x = RoundToLeaves(g, x);
    ASSERT_OK_AND_ASSIGN(const TensorMap want, Evaluate(g, x));
    ASSERT_OK_AND_ASSIGN(const TensorMap got,
                         RunChain(g, x, KernelChoice::kLoops, 1));
    // 30 fp32 ops deep, values of order one.
    EXPECT_LE(Nmse(got.at("y"), want.at("y")), 1e-9);
    EXPECT_LE(Nmse(got.at("z"), want.at("z")), 1e-9);
  }
}

}  // namespace
}  // namespace onestep
