// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace onestep {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Lt;

TEST(RandomTest, GivesThePublishedNumbersOfSplitMix64) {
  Random random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
  EXPECT_EQ(random.Next(), 9817491932198370423u);
}

TEST(RandomTest, StreamsOfOneSeedDiffer) {
  EXPECT_NE(Random(1, 0).Next(), Random(1, 1).Next());
  EXPECT_NE(Random(1, 1).Next(), Random(1, 2).Next());
}

TEST(RandomTest, UniformStaysInRangeWithTheRightMeanAndVariance) {
  Random random(1);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
    squares += x * x;
  }
  // Five standard errors: 5 * sqrt(1/12 / 100000), 5 * sqrt(4/45 / 100000).
  EXPECT_NEAR(sum / kDraws, 0.5, 0.0046);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.0048);
}

TEST(RandomTest, UniformBetweenBoundsStaysBetweenThem) {
  Random random(1);
  double lowest = 1, highest = -1;
  for (int i = 0; i < 1000; ++i) {
    const double x = random.Uniform(-3, 5);
    lowest = std::min(lowest, x);
    highest = std::max(highest, x);
  }
  EXPECT_GE(lowest, -3);
  EXPECT_LT(lowest, -2.9);
  EXPECT_LT(highest, 5);
  EXPECT_GT(highest, 4.9);
}

TEST(RandomTest, NormalHasTheMomentsOfANormal) {
  Random random(1);
  std::array<double, 5> moments = {};
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Normal();
    double power = 1;
    for (double& moment : moments) {
      moment += power / kDraws;
      power *= x;
    }
  }
  // Five standard errors: sqrt of 1, 2, 15, 96 over 100000.
  EXPECT_NEAR(moments[1], 0, 0.016);
  EXPECT_NEAR(moments[2], 1, 0.023);
  EXPECT_NEAR(moments[3], 0, 0.062);
  EXPECT_NEAR(moments[4], 3, 0.155);
}

TEST(RandomTest, BelowGivesEveryValueEquallyOften) {
  Random random(1);
  std::array<int, 7> counts = {};
  for (int i = 0; i < 70000; ++i) ++counts.at(random.Below(7));
  // Five standard deviations of 10000: 5 * sqrt(70000 * 1/7 * 6/7).
  EXPECT_THAT(counts, Each(Ge(10000 - 463)));
  EXPECT_THAT(counts, Each(Lt(10000 + 463)));
}

TEST(RandomTest, BelowIsUnbiasedForRangesThatDoNotDivideTheWord) {
  // Without rejection, values under 2^62 would come half of the time.
  constexpr uint64_t kQuarter = uint64_t{1} << 62;
  Random random(1);
  int low = 0;
  for (int i = 0; i < 30000; ++i) low += random.Below(3 * kQuarter) < kQuarter;
  EXPECT_NEAR(low, 10000, 409);  // five standard deviations
}

TEST(RandomTest, BelowOneIsZero) { EXPECT_EQ(Random(1).Below(1), 0u); }

TEST(RandomTest, PermutationHoldsEveryNumberOnce) {
  std::vector<int32_t> order = Random(1).Permutation(1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
}

TEST(RandomTest, PermutationGivesEveryOrderEquallyOften) {
  Random random(1);
  std::array<int, 6> counts = {};
  for (int i = 0; i < 6000; ++i) {
    const std::vector<int32_t> order = random.Permutation(3);
    ++counts.at(order[0] * 2 + (order[1] > order[2]));
  }
  // Five standard deviations of 1000: 5 * sqrt(6000 * 1/6 * 5/6).
  EXPECT_THAT(counts, Each(Ge(1000 - 144)));
  EXPECT_THAT(counts, Each(Lt(1000 + 144)));
}

TEST(RandomTest, PermutationOfNoneOrOneIsTrivial) {
  EXPECT_THAT(Random(1).Permutation(0), ElementsAre());
  EXPECT_THAT(Random(1).Permutation(1), ElementsAre(0));
}

}  // namespace
}  // namespace onestep
