// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/statistics.h"

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
  const Interval ratio = PairedRatio({{6, 6}, {6, 6}}, {{4, 4}, {4, 4}});
  EXPECT_DOUBLE_EQ(ratio.value, 1.5);
  EXPECT_DOUBLE_EQ(ratio.low, 1.5);
  EXPECT_DOUBLE_EQ(ratio.high, 1.5);
}

TEST(StatisticsTest, RatioOfASampleToItselfIsOne) {
  const Samples a = {{3, 4, 5}, {9, 2, 7}};
  const Interval ratio = PairedRatio(a, a);
  EXPECT_EQ(ratio.value, 1);
  EXPECT_EQ(ratio.low, 1);
  EXPECT_EQ(ratio.high, 1);
}

TEST(StatisticsTest, RatioOfPairsIgnoresWhatSlowsBoth) {
  // The second half of the samples ran at half the speed.
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) {
    const double slow = i < 20 ? 1 : 2;
    a.push_back(3 * slow);
    b.push_back(2 * slow);
  }
  const Interval ratio = PairedRatio({a}, {b});
  EXPECT_DOUBLE_EQ(ratio.value, 1.5);
  EXPECT_DOUBLE_EQ(ratio.low, 1.5);
  EXPECT_DOUBLE_EQ(ratio.high, 1.5);
}

TEST(StatisticsTest, RatioIsTheSameTwice) {
  const Samples a = {{3, 4, 5}, {9, 2, 7}}, b = {{1, 2, 2}, {3, 1, 1}};
  const Interval one = PairedRatio(a, b), two = PairedRatio(a, b);
  EXPECT_EQ(one.low, two.low);
  EXPECT_EQ(one.high, two.high);
  EXPECT_LT(one.low, one.value);
  EXPECT_GT(one.high, one.value);
}

TEST(StatisticsTest, OneStartThatDiffersWidensTheInterval) {
  const std::vector<double> at2 = {1.99, 2, 2.01}, at3 = {2.99, 3, 3.01},
                            ones = {1, 1, 1};
  const Samples divisor = {ones, ones, ones};
  EXPECT_LT(PairedRatio({at2, at2, at2}, divisor).high, 2.02);
  EXPECT_GT(PairedRatio({at2, at2, at3}, divisor).high, 3);
}

TEST(StatisticsTest, RunsOfOtherLengthsAreComparedToo) {
  const Interval ratio = UnpairedRatio({{6, 6}, {6, 6, 6}}, {{4}, {4}, {4}});
  EXPECT_DOUBLE_EQ(ratio.value, 1.5);
  EXPECT_DOUBLE_EQ(ratio.low, 1.5);
  EXPECT_DOUBLE_EQ(ratio.high, 1.5);
}

// What the noise of a machine looks like. Of the samples, relative: 1 %, and
// one in twenty is disturbed by up to 50 %; the clock drifts by 5 %, for both
// ways alike; each start makes each way faster or slower for good, by `offset`.
// That was 0.4 % for `trainer bench` in six processes on two cores of Zen 5.
class SimulatedMachine {
 public:
  explicit SimulatedMachine(double offset) : offset_(offset) {}

  struct Pair {
    Samples a, b;
  };
  Pair Run(double ratio, int starts = 3, int samples = 20) {
    Pair pair;
    const double phase = random_.Uniform(0, 6);
    for (int start = 0; start < starts; ++start) {
      const double a = ratio * std::exp(offset_ * random_.Normal());
      const double b = std::exp(offset_ * random_.Normal());
      pair.a.emplace_back();
      pair.b.emplace_back();
      for (int i = 0; i < samples; ++i) {
        const double clock =
            1 + 0.05 * std::sin(phase + 0.1 * (start * samples + i));
        pair.a.back().push_back(a * clock * Noise());
        pair.b.back().push_back(b * clock * Noise());
      }
    }
    return pair;
  }

 private:
  double Noise() {
    const double disturbed =
        random_.Uniform() < 0.05 ? random_.Uniform(0, 0.5) : 0;
    return std::exp(0.01 * random_.Normal()) + disturbed;
  }

  const double offset_;
  Random random_{3};
};

// Of `runs`, how many have an interval that leaves out 1.
int Differences(double offset, double ratio, int runs) {
  SimulatedMachine machine(offset);
  int differences = 0;
  for (int run = 0; run < runs; ++run) {
    const auto [a, b] = machine.Run(ratio);
    differences += !PairedRatio(a, b, /*seed=*/run).Holds(1);
  }
  return differences;
}

TEST(StatisticsTest, EqualWaysDifferInFewerThan8Of100Runs) {
  EXPECT_LT(Differences(/*offset=*/0.01, /*ratio=*/1, /*runs=*/1000), 80);
}

TEST(StatisticsTest, AWayThatIs5PercentSlowerIsFoundIn90Of100Runs) {
  EXPECT_GT(Differences(/*offset=*/0.005, /*ratio=*/1.05, /*runs=*/300), 270);
}

TEST(StatisticsTest, ThePresentAndThePastDifferInFewerThan8Of100Runs) {
  SimulatedMachine machine(0.005);
  int differences = 0;
  for (int run = 0; run < 200; ++run) {
    const Samples now = machine.Run(1).a, past = machine.Run(1).a;
    differences += !UnpairedRatio(now, past, /*seed=*/run).Holds(1);
  }
  EXPECT_LT(differences, 16);
}

}  // namespace
}  // namespace onestep
