// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/call_costs.h"

#include <gtest/gtest.h>

namespace onestep {
namespace {

KernelCall Call(double size, double work) {
  return {"matmul", "cpu", {size}, work};
}

TEST(CallCostsTest, FindsWhatWasMeasured) {
  CallCosts costs;
  costs.Add(Call(8, 100), 10);
  const auto found = costs.Find(Call(8, 100));
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->us, 10);
  EXPECT_DOUBLE_EQ(found->overhead_us, 7);  // the fixed cost
}

TEST(CallCostsTest, TwiceTheWorkTakesTheFixedCostOnce) {
  CallCosts costs;
  costs.Add(Call(8, 100), 10);
  EXPECT_DOUBLE_EQ(costs.Find(Call(8, 200))->us, 7 + 2 * 3);
}

TEST(CallCostsTest, HalfwayBetweenTwoSizesTheRateIsTheGeometricMean) {
  CallCosts costs;
  costs.Add(Call(1, 1), 2);    // 1.4 and 0.6
  costs.Add(Call(4, 1), 3.8);  // 1.4 and 2.4
  EXPECT_DOUBLE_EQ(costs.Find(Call(2, 1))->us, 1.4 + 1.2);
}

TEST(CallCostsTest, NearCallsCountMoreThanFarOnes) {
  CallCosts costs;
  costs.Add(Call(1, 1), 2);
  costs.Add(Call(1024, 1), 20);
  EXPECT_NEAR(costs.Find(Call(2, 1))->us, 2, 0.1);
  EXPECT_NEAR(costs.Find(Call(512, 1))->us, 20, 1);
}

TEST(CallCostsTest, OfEqualCallsTheFastestCounts) {
  CallCosts costs;
  costs.Add(Call(8, 100), 10);
  costs.Add(Call(8, 100), 4);
  costs.Add(Call(8, 100), 30);
  EXPECT_EQ(costs.points(), 1);
  EXPECT_DOUBLE_EQ(costs.Find(Call(8, 100))->us, 4);
}

TEST(CallCostsTest, ForksAndJoinsAreOverheadTooAndGrowWithTheCall) {
  CallCosts costs;
  costs.Add(Call(1, 1), 1);  // fixed: 0.7
  costs.Add({"other", "cpu", {1}, 10}, 10.7, /*overhead_us=*/2.5);
  const auto found = costs.Find({"other", "cpu", {1}, 20});
  EXPECT_DOUBLE_EQ(found->us, 0.7 + 20);
  EXPECT_DOUBLE_EQ(found->overhead_us, 0.7 + 5);
}

TEST(CallCostsTest, KnowsNothingOfAnotherKernelOrFamily) {
  CallCosts costs;
  costs.Add(Call(8, 100), 10);
  EXPECT_FALSE(costs.Find({"add", "cpu", {8}, 100}));
  EXPECT_FALSE(costs.Find({"matmul", "cpu x2", {8}, 100}));
  EXPECT_FALSE(costs.Find({"matmul", "cpu", {8, 8}, 100}));
}

TEST(CallCostsTest, ComesBackFromItsJson) {
  CallCosts costs;
  costs.Add(Call(8, 100), 10, 1);
  costs.Add(Call(16, 300), 20);
  const auto back = CallCosts::FromJson(costs.ToJson());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->ToJson(), costs.ToJson());
  EXPECT_EQ(back->Find(Call(9, 120))->us, costs.Find(Call(9, 120))->us);
}

TEST(CallCostsTest, ReadsNothingThatItDidNotWrite) {
  EXPECT_FALSE(CallCosts::FromJson(nullptr));
  EXPECT_FALSE(CallCosts::FromJson(nlohmann::ordered_json::array()));
  EXPECT_FALSE(CallCosts::FromJson({{{"kernel", "matmul"}}}));
  EXPECT_FALSE(CallCosts::FromJson({1, 2}));
  CallCosts costs;
  costs.Add(Call(8, 100), 10);
  auto json = costs.ToJson();
  json[0]["us"] = 0;
  EXPECT_FALSE(CallCosts::FromJson(json));
  json[0]["us"] = 10;
  json[0]["size"][0] = -1;
  EXPECT_FALSE(CallCosts::FromJson(json));
}

}  // namespace
}  // namespace onestep
