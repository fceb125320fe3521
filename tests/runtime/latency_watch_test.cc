// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/latency_watch.h"

#include <gtest/gtest.h>

#include <thread>

namespace onestep {
namespace {

constexpr double kNear = 18, kBetween = 60, kFar = 123;

// The last answer to so many loads of that time.
bool AddMany(FarByLoads& far, double ns, int times = 50) {
  bool is_far = true;
  for (int i = 0; i < times; ++i) is_far = far.Add(ns);
  return is_far;
}

TEST(FarByLoadsTest, IsFarUntilKnownToBeNear) {
  FarByLoads far;
  EXPECT_TRUE(far.Add(kNear));
  EXPECT_FALSE(AddMany(far, kNear));
}

TEST(FarByLoadsTest, StaysAsItIsBetweenTheThresholds) {
  FarByLoads far;
  EXPECT_TRUE(AddMany(far, kBetween));
  EXPECT_FALSE(AddMany(far, kNear));
  EXPECT_FALSE(AddMany(far, kBetween));
  EXPECT_TRUE(AddMany(far, kFar));
  EXPECT_TRUE(AddMany(far, kBetween));
}

TEST(FarByLoadsTest, OneSlowLoadDoesNotMakeItFar) {
  FarByLoads far;
  AddMany(far, kNear);
  EXPECT_FALSE(far.Add(kFar));
}

TEST(FarByLoadsTest, LoadsOfOldLinesAndStoppedThreadsDoNotCount) {
  FarByLoads far;
  EXPECT_TRUE(AddMany(far, 5));
  AddMany(far, kNear);
  EXPECT_FALSE(AddMany(far, 1e6));
}

TEST(LatencyWatchTest, SaysFarAtFirst) {
  EXPECT_TRUE(LatencyWatch(2).Probe(0));
}

// Each of three has two others to load from. What they say depends on where
// the system runs them; that they may probe at once is for ThreadSanitizer.
TEST(LatencyWatchTest, ThreadsProbeAtTheSameTime) {
  LatencyWatch watch(3);
  const auto probe = [&watch](int w) {
    for (int i = 0; i < 1000; ++i) watch.Probe(w);
  };
  std::thread one(probe, 1), two(probe, 2);
  probe(0);
  one.join();
  two.join();
}

}  // namespace
}  // namespace onestep
