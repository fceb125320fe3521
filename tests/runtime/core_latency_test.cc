// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/core_latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>
#include <vector>

#include "runtime/cpu/affinity.h"
#include "runtime/cpu/cpu_info.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(CoreLatencyTest, IsOfTwoCpusThatAreAllowed) {
  const std::vector<int> allowed = AffinityCpus();
  if (allowed.size() < 2) GTEST_SKIP() << "wants two CPUs";
  ASSERT_OK_AND_ASSIGN(const CoreLatency latency, MeasureCoreLatency(2));
  EXPECT_THAT(allowed, Contains(latency.from));
  EXPECT_THAT(allowed, Contains(latency.to));
  EXPECT_NE(latency.from, latency.to);
  EXPECT_GT(latency.ns, 0);
  EXPECT_EQ(AffinityCpus(), allowed) << "moved the calling thread";
}

TEST(CoreLatencyTest, RefusesOneCpu) {
  std::thread([cpus = AffinityCpus()] {
    ASSERT_OK(SetThreadCpus(pthread_self(), {cpus.front()}));
    EXPECT_THAT(
        MeasureCoreLatency(2).status(),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 HasSubstr("core latency: want 2 CPUs or more, got 1")));
  }).join();
  EXPECT_THAT(
      MeasureCoreLatency(1).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("got 1")));
}

TEST(CoreLatencyTest, IsOfTheCpusThatWorkersArePlacedOn) {
  const std::vector<int> allowed = AffinityCpus();
  if (allowed.size() < 2) GTEST_SKIP() << "wants two CPUs";
  const Affinity list{Affinity::kList, {allowed.back(), allowed.front()}};
  ASSERT_OK_AND_ASSIGN(const CoreLatency latency, MeasureCoreLatency(2, list));
  EXPECT_EQ(latency.from, allowed.back());
  EXPECT_EQ(latency.to, allowed.front());
  EXPECT_THAT(MeasureCoreLatency(3, list).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want a CPU for each of 3 workers, got 2")));
}

TEST(CoreLatencyTest, SaysWhichCoresAndWhetherTheyAreFar) {
  EXPECT_EQ(ToString(CoreLatency{0, 1, 38.4}), "cores 0 and 1: 38 ns, near");
  EXPECT_EQ(ToString(CoreLatency{2, 5, 180}), "cores 2 and 5: 180 ns, far");
}

}  // namespace
}  // namespace onestep
