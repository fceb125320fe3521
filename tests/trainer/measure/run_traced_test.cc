// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/cpu/openmp_forks.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

struct Way {
  const char* name;
  bool fuse;
  Dispatch dispatch;
  Kernels kernels;
  int workers;  // with a list of calls each
};

class RunTracedTest : public testing::TestWithParam<Way> {
 protected:
  static constexpr int64_t kBatch = 64;
  static constexpr int kThreads = 2;

  std::unique_ptr<StepSession> Create() {
    CompileOptions options;
    options.fuse = GetParam().fuse;
    options.dispatch = GetParam().dispatch;
    options.kernels = GetParam().kernels;
    options.threads = kThreads;
    auto session =
        StepSession::Create({{200, 96, 10}}, {}, options, data_, kBatch);
    EXPECT_OK(session);
    EXPECT_OK((*session)->Reset(0.1f));
    return *std::move(session);
  }

  const Dataset data_ = RandomRows(5 * kBatch, 200, 10, /*seed=*/1);
};

TEST_P(RunTracedTest, HasTheSameLossesAsRun) {
  auto plain = Create(), traced = Create();
  std::vector<StepTrace> traces;
  for (int i = 0; i < 8; ++i) {  // more than an epoch
    ASSERT_OK(plain->Run(1));
    ASSERT_OK(traced->RunTraced(1, traces));
    EXPECT_EQ(plain->loss(), traced->loss());
  }
  EXPECT_EQ(traces.size(), 8);
}

TEST_P(RunTracedTest, StampsOfAWorkerFollowEachOtherWithinItsRun) {
  auto session = Create();
  std::vector<StepTrace> traces;
  ASSERT_OK(session->RunTraced(4, traces));
  ASSERT_EQ(traces.size(), 1);
  const StepTrace& trace = traces[0];
  EXPECT_EQ(trace.steps, 4);
  ASSERT_EQ(std::ssize(trace.workers), GetParam().workers);
  ASSERT_EQ(session->executable().workers(), GetParam().workers);
  for (int w = 0; w < GetParam().workers; ++w) {
    const StepTrace::Worker& worker = trace.workers[w];
    EXPECT_EQ(worker.calls, std::ssize(session->executable().WorkerSteps(w)));
    ASSERT_EQ(std::ssize(worker.stamps), 4 * (worker.calls + 1));
    EXPECT_TRUE(std::is_sorted(worker.stamps.begin(), worker.stamps.end()));
    EXPECT_LE(trace.begin, worker.begin);
    EXPECT_LE(worker.begin, worker.stamps.front());
    EXPECT_LT(worker.stamps.front(), worker.stamps.back());
    EXPECT_LE(worker.stamps.back(), worker.end);
    EXPECT_LE(worker.end, trace.end);
  }
}

// Of oneDNN's own threads as of those of our loops.
TEST_P(RunTracedTest, SeesTheForksOfAChain) {
  if (!ForkRecorder::Available().ok()) GTEST_SKIP();
  auto session = Create();
  std::vector<StepTrace> traces;
  ASSERT_OK(session->RunTraced(3, traces));
  const StepTrace::Worker& worker = traces[0].workers[0];
  if (GetParam().dispatch == Dispatch::kSingle) {
    EXPECT_EQ(worker.forks_recorded, 0);
    return;
  }
  const int64_t per_step = worker.forks_recorded / 3;
  EXPECT_GE(per_step, 2);  // the large matmuls
  EXPECT_EQ(per_step * 3, worker.forks_recorded);
  for (int64_t i = 0; i < worker.forks_recorded; ++i) {
    const ForkStamps& fork = worker.forks[i];
    EXPECT_LE(fork.begin, fork.body_begin);
    EXPECT_LE(fork.body_begin, fork.body_end);
    EXPECT_LE(fork.body_end, fork.end);
    EXPECT_LE(worker.begin, fork.begin);
    EXPECT_LE(fork.end, worker.end);
  }
}

TEST_P(RunTracedTest, TheWorkersWaitOncePerExchange) {
  auto session = Create();
  const std::vector<StepInfo>& steps = session->executable().WorkerSteps(0);
  const auto count = [&](StepKind kind) {
    return std::count_if(steps.begin(), steps.end(),
                         [&](const StepInfo& s) { return s.kind == kind; });
  };
  const bool single = GetParam().dispatch == Dispatch::kSingle;
  EXPECT_EQ(count(StepKind::kWait), single ? 1 : 0);
  EXPECT_EQ(count(StepKind::kExchange), single ? 2 : 0);  // give and take
}

INSTANTIATE_TEST_SUITE_P(
    Ways, RunTracedTest,
    testing::Values(Way{"unfused", false, Dispatch::kOps, Kernels::kOnednn, 1},
                    Way{"loops", false, Dispatch::kOps, Kernels::kLoops, 1},
                    Way{"fused", true, Dispatch::kOps, Kernels::kAuto, 1},
                    Way{"single", true, Dispatch::kSingle, Kernels::kAuto, 2}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onestep
