// SPDX-License-Identifier: Apache-2.0
#include "trainer/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "trainer/data/random.h"

namespace onestep {
namespace {

TEST(StatisticsTest, MedianOfOddCountIsTheMiddleValue) {
  EXPECT_EQ(Median({5, 1, 3}), 3);
}

TEST(StatisticsTest, MedianOfEvenCountIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
}

TEST(StatisticsTest, PercentileOfOneValueIsThatValue) {
  EXPECT_EQ(Percentile({7}, 0.05), 7);
  EXPECT_EQ(Percentile({7}, 1), 7);
}

TEST(StatisticsTest, PercentileInterpolatesBetweenValues) {
  const std::vector<double> values = {0, 10, 20, 30, 40};
  EXPECT_EQ(Percentile(values, 0), 0);
  EXPECT_EQ(Percentile(values, 1), 40);
  EXPECT_DOUBLE_EQ(Percentile(values, 0.05), 2);
  EXPECT_DOUBLE_EQ(Percentile(values, 0.95), 38);
}

TEST(StatisticsTest, RatioOfConstantsHasAnIntervalOfNoWidth) {
  const Interval ratio = RatioOfMedians({6, 6, 6, 6}, {4, 4, 4, 4});
  EXPECT_EQ(ratio.value, 1.5);
  EXPECT_EQ(ratio.low, 1.5);
  EXPECT_EQ(ratio.high, 1.5);
}

TEST(StatisticsTest, RatioOfPairsIgnoresWhatSlowsBoth) {
  // The second half of the samples ran at half the speed.
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) {
    const double slow = i < 20 ? 1 : 2;
    a.push_back(3 * slow);
    b.push_back(2 * slow);
  }
  const Interval ratio = RatioOfMedians(a, b);
  EXPECT_EQ(ratio.value, 1.5);
  EXPECT_EQ(ratio.low, 1.5);
  EXPECT_EQ(ratio.high, 1.5);
}

TEST(StatisticsTest, RatioIsTheSameTwice) {
  const std::vector<double> a = {3, 4, 5, 9, 2}, b = {1, 2, 2, 3, 1};
  const Interval one = RatioOfMedians(a, b), two = RatioOfMedians(a, b);
  EXPECT_EQ(one.low, two.low);
  EXPECT_EQ(one.high, two.high);
  EXPECT_LE(one.low, one.value);
  EXPECT_GE(one.high, one.value);
}

// 100 experiments of known ratio 2: an interval that deserves its name holds
// it about 95 times. Fewer than 88 times has a chance of 1 in 600 (binomial)
// for a perfect one.
TEST(StatisticsTest, IntervalHoldsTheTrueRatio) {
  Random random(3);
  int held = 0;
  for (int experiment = 0; experiment < 100; ++experiment) {
    std::vector<double> a, b;
    for (int i = 0; i < 40; ++i) {
      a.push_back(2 * std::exp(0.1 * random.Normal()));
      b.push_back(std::exp(0.1 * random.Normal()));
    }
    const Interval ratio = RatioOfMedians(a, b);
    held += ratio.low <= 2 && 2 <= ratio.high;
    EXPECT_LT(ratio.high - ratio.low, 0.4);
  }
  EXPECT_GE(held, 88);
}

}  // namespace
}  // namespace onestep
