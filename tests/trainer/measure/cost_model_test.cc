// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "nlohmann/json.hpp"
#include "tests/trainer/measure/steps_only.h"

namespace onestep {
namespace {

using ::testing::ElementsAre;

StepInfo MatMul(int64_t m, int64_t n, int64_t k) {
  StepInfo info;
  info.op = "matmul";
  info.label = "matmul";
  info.operands = {F32({m, k}), F32({k, n})};
  info.results = {F32({m, n})};
  info.implementation = "cpu AVX-512";
  info.flops = 2.0 * m * n * k;
  info.bytes = 4.0 * (m * k + k * n + m * n);
  return info;
}

StepInfo Step(const char* op, StepKind kind, double bytes) {
  StepInfo info;
  info.op = op;
  info.kind = kind;
  info.bytes = bytes;
  info.implementation = "shared memory";
  return info;
}

// 100 GFLOP/s; 10 GB/s.
MachineCosts Machine() {
  MachineCosts costs;
  costs.peak_gflops = 100;
  costs.copies = {{1e4, 10}};
  return costs;
}

TEST(MachineCostsTest, AreReadAsWrittenAndNotWhenSomethingIsZero) {
  MachineCosts costs = Machine();
  costs.seconds = 7;
  costs.cores = {42, 45};
  costs.calls.Add({"relu", "cpu", {8}, 8}, 2);
  const nlohmann::ordered_json json = ToJson(costs);
  const std::optional<MachineCosts> read = MachineCostsOf(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(ToJson(*read), json);
  for (const char* value :
       {"/seconds", "/peak_gflops", "/copies/0/bytes", "/copies/0/gbs",
        "/calls/0/work", "/calls/0/us", "/calls/0/size/0"}) {
    nlohmann::ordered_json zero = json;
    zero[nlohmann::ordered_json::json_pointer(value)] = 0;
    EXPECT_FALSE(MachineCostsOf(zero)) << value;
    zero = json;
    zero[nlohmann::ordered_json::json_pointer(value)] = "7";
    EXPECT_FALSE(MachineCostsOf(zero)) << value;
  }
}

TEST(CoreDistanceTest, AChangeToTwiceOrHalfIsTold) {
  CoreDistance cores;
  EXPECT_EQ(cores.ChangeText(180), "");  // nothing is known
  for (const double ns : {45, 42, 44}) cores.Add(ns);
  EXPECT_EQ(cores.ChangeText(180),
            "cores are 180 ns apart now and were 42 to 45 when calls were "
            "timed: with several threads steps may take other times");
  EXPECT_EQ(cores.ChangeText(80), "");
  EXPECT_EQ(cores.ChangeText(22), "");
  EXPECT_NE(cores.ChangeText(20), "");
  EXPECT_EQ(cores.ChangeText(0), "");  // one core
  cores.Add(170);                      // it has changed meanwhile
  EXPECT_EQ(cores.ChangeText(180), "");
}

TEST(CallOfTest, AMatMulWorksForWholeVectors) {
  const KernelCall call = CallOf(MatMul(8, 10, 32), {});
  EXPECT_EQ(call.kernel, "matmul");
  EXPECT_EQ(call.family, "cpu");
  EXPECT_THAT(call.size, ElementsAre(8, 16, 32, 1));
  EXPECT_EQ(call.work, 2 * 8 * 16 * 32);
}

TEST(CallOfTest, ATransposedMatMulIsAnotherKernel) {
  StepInfo info = MatMul(784, 64, 32);
  info.label = "matmul {trans_a=true, accumulate=true} ...";
  info.operands[0] = F32({32, 784});
  const KernelCall call = CallOf(info, {});
  EXPECT_EQ(call.kernel, "matmul a^T");
  EXPECT_THAT(call.size, ElementsAre(784, 64, 32, 1));
}

TEST(CallOfTest, RowsAPageApartAreFarFromAllOthers) {
  EXPECT_THAT(CallOf(MatMul(8, 1024, 32), {}).size,
              ElementsAre(8, 1024, 32, 8));
}

TEST(CallOfTest, TheThreadsOfAChainAreAFamilyEach) {
  StepContext context;
  context.threads = 2;
  StepInfo info = MatMul(8, 16, 32);
  EXPECT_EQ(CallOf(info, context).family, "cpu x2");
  info.implementation = "onednn brg:avx512_core";
  EXPECT_EQ(CallOf(info, context).family, "onednn x2");
}

TEST(CallOfTest, AGatherDependsOnTheTableUnlessItWasFetchedAhead) {
  StepInfo info;
  info.op = "gather_convert";
  info.implementation = "cpu AVX-512";
  info.operands = {{DType::kU8, {1000, 20}}, {DType::kI32, {8}}};
  info.results = {F32({8, 20})};
  StepContext context;
  context.table_bytes = 20000;
  EXPECT_THAT(CallOf(info, context).size, ElementsAre(8, 20, 20000));
  context.fetched = true;
  EXPECT_THAT(CallOf(info, context).size, ElementsAre(8, 20, 160));
}

TEST(CallOfTest, AProductOfNonzerosWorksForThemAlone) {
  StepInfo info;
  info.op = "sparse_outer";
  info.implementation = "cpu AVX-512";
  info.operands = {{DType::kI32, {8, 15}}, F32({8, 32})};
  info.results = {F32({20, 32})};
  info.flops = 2.0 * 8 * 32 * 4;  // 4 of 20 values
  EXPECT_THAT(CallOf(info, {}).size, ElementsAre(8, 32, 4, 1));
  EXPECT_EQ(CallOf(info, {}).work, info.flops);
}

TEST(WaitAfterTest, EqualOctavesOfWorkAreOneCall) {
  EXPECT_EQ(WaitAfter(11, 2), WaitAfter(9, 2));
  EXPECT_NE(WaitAfter(12, 2), WaitAfter(9, 2));
  EXPECT_NE(WaitAfter(9, 2), WaitAfter(9, 4));
}

TEST(EstimateStepTest, AddsUpCallsByWhatBoundsThem) {
  MachineCosts costs = Machine();
  // 5 us of which 3.5 us are fixed; 10 us.
  costs.calls.Add(CallOf(MatMul(8, 16, 1), {}), 5);
  costs.calls.Add(CallOf(MatMul(64, 64, 64), {}), 10);
  // At 100 GFLOP/s and 10 GB/s: 0.003 against 0.06 us; 5.2 against 4.9 us.
  const StepCost cost = EstimateStep(
      costs, CompiledOf({MatMul(8, 16, 1), MatMul(64, 64, 64)}), 1, 0);
  // To 1e-6: the far call has a weight, too.
  EXPECT_NEAR(cost.us, 15, 1e-6);
  EXPECT_NEAR(cost.memory_us, 1.5, 1e-6);
  EXPECT_NEAR(cost.compute_us, 6.5, 1e-6);
  EXPECT_NEAR(cost.launch_us, 7, 1e-6);
  EXPECT_EQ(cost.transfer_us, 0);
  EXPECT_TRUE(cost.unknown.empty());
}

TEST(EstimateStepTest, WaitsAndExchangesAreLaunches) {
  MachineCosts costs = Machine();
  StepContext context;
  context.workers = 2;
  const StepInfo exchange = Step("exchange", StepKind::kExchange, 100);
  costs.calls.Add(CallOf(MatMul(64, 64, 64), context), 10);
  costs.calls.Add(CallOf(exchange, context), 2);
  costs.calls.Add(WaitAfter(10, 2), 1);
  const StepCost cost = EstimateStep(
      costs,
      CompiledOf(
          {MatMul(64, 64, 64), Step("wait", StepKind::kWait, 0), exchange},
          /*workers=*/2),
      /*threads=*/2, 0);
  EXPECT_DOUBLE_EQ(cost.us, 13);
  EXPECT_DOUBLE_EQ(cost.launch_us, 7 + 2 + 1);
}

TEST(EstimateStepTest, AKernelThatWasNotMeasuredIsPricedAsACopyAndNamed) {
  MachineCosts costs = Machine();
  const StepCost cost =
      EstimateStep(costs, CompiledOf({MatMul(64, 64, 64)}), 1, 0);
  EXPECT_DOUBLE_EQ(cost.us, 4.0 * 3 * 64 * 64 / 10e3);
  EXPECT_THAT(cost.unknown, ElementsAre("matmul, cpu"));
}

}  // namespace
}  // namespace onestep
