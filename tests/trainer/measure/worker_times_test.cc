// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/worker_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onestep {
namespace {

using testing::ElementsAre;

// A primitive of oneDNN that forks in the first of two steps, and a loop that
// has next to nothing to do in the second.
struct MadeTrace {
  MadeTrace() {
    trace.begin = 0;
    trace.end = 10000;
    trace.steps = 2;
    StepTrace::Worker worker;
    worker.calls = 2;
    worker.stamps = {1000, 3010, 3560, 3610, 4620, 4660};
    worker.forks = {{1200, 1320, 2500, 2620}, {0, 0, 0, 0}};
    worker.forks_recorded = 1;
    worker.forks_missed = 3;
    trace.workers = {worker};
    steps.resize(2);
    steps[0].op = "matmul";
    steps[0].implementation = "onednn brg:avx512_core";
    steps[1].op = "relu";
    steps[1].implementation = "cpu";
    cost = {.clock_ns = 10, .call_ns = 50, .matmul_ns = 300, .eltwise_ns = 90};
    times.run = {0};
    AddTrace(trace, /*w=*/0, steps, cost, /*slice_steps=*/2, times);
  }

  StepTrace trace;
  std::vector<StepInfo> steps;
  DispatchCost cost;
  WorkerTimes times;
};

TEST(WorkerTimesTest, EachPartOfAStepIsWhatTheStampsSay) {
  const WorkerTimes times = MadeTrace().times;
  // 2010 less the clock's 10; of the rest the fork waited 120 and 120 less two
  // reads, has two more in it, and the primitive's dispatch takes 300.
  EXPECT_THAT(times.fork_join, ElementsAre(220, 0));
  EXPECT_THAT(times.calls, ElementsAre(ElementsAre(1440, 700),
                                       // 30 are less than a call costs.
                                       ElementsAre(490, 0)));
  // 300 and 50, and 40 between the steps; then 300 and the 30.
  EXPECT_THAT(times.dispatch, ElementsAre(390, 330));
  EXPECT_THAT(times.run, ElementsAre((1000 + 10000 - 4660) / 2));
  EXPECT_EQ(times.forks_missed, 3);
}

TEST(WorkerTimesTest, PartsAndReadsOfTheClockAddUpToTheRun) {
  const MadeTrace made;
  double ns = 2 * made.times.run[0];
  for (int step = 0; step < 2; ++step) {
    ns += made.times.fork_join[step] + made.times.dispatch[step];
    for (const auto& call : made.times.calls) ns += call[step];
  }
  const int reads = 4 /* calls */ + 1 /* between steps */ + 4 /* a fork */;
  EXPECT_EQ(ns + reads * made.cost.clock_ns, made.trace.end);
}

TEST(WorkerTimesTest, SlicesFollowEachOther) {
  const WorkerTimes one = MadeTrace().times;
  WorkerTimes two;
  two.Append(one);
  two.Append(one);
  EXPECT_THAT(two.calls[0], ElementsAre(1440, 700, 1440, 700));
  EXPECT_THAT(two.fork_join, ElementsAre(220, 0, 220, 0));
  EXPECT_THAT(two.dispatch, ElementsAre(390, 330, 390, 330));
  EXPECT_THAT(two.run, ElementsAre(3170, 3170));
  EXPECT_EQ(two.forks_missed, 6);
}

}  // namespace
}  // namespace onestep
