// SPDX-License-Identifier: Apache-2.0
// Traced runs on a GPU: every node by itself, and the same numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/compiler.h"
#include "runtime/base/step_trace.h"
#include "runtime/cuda/cuda_program.h"
#include "tests/cuda/cuda_device.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

using testing::HasSubstr;

class CudaTraceTest : public CudaTest {
 protected:
  absl::StatusOr<std::unique_ptr<StepSession>> Session(
      Dispatch dispatch, CudaTier tier, int64_t table_limit_bytes = 0) {
    CompileOptions options;
    options.device = Device::kGpu;
    options.dispatch = dispatch;
    options.cuda.cuda = &cuda();
    options.cuda.tier = tier;
    options.cuda.steps_per_launch = 2;
    options.cuda.table_limit_bytes = table_limit_bytes;
    return StepSession::Create({.widths = {16, 8, 3}}, {}, options, data_, 4);
  }

  // By turns, over the end of an epoch: each has all weights from the other.
  void ExpectSameLosses(Dispatch dispatch, CudaTier tier,
                        int64_t table_limit_bytes = 0) {
    ASSERT_OK_AND_ASSIGN(const auto plain,
                         Session(dispatch, tier, table_limit_bytes));
    ASSERT_OK_AND_ASSIGN(const auto traced,
                         Session(dispatch, tier, table_limit_bytes));
    std::vector<StepTrace> traces;
    for (int i = 0; i < 4; ++i) {
      ASSERT_OK(plain->Run(3));
      ASSERT_OK(i % 2 == 0 ? traced->RunTraced(3, traces) : traced->Run(3));
      EXPECT_EQ(plain->loss(), traced->loss());
    }
    EXPECT_EQ(plain->executable().traffic()->steps,
              traced->executable().traffic()->steps);
  }

  const Dataset data_ = RandomRows(/*rows=*/20, 16, 3, /*seed=*/1);
};

TEST_F(CudaTraceTest, HasTheSameLossesAsRun) {
  for (const Dispatch dispatch : {Dispatch::kOps, Dispatch::kGraph}) {
    for (const CudaTier tier : {CudaTier::kLibrary, CudaTier::kFused}) {
      SCOPED_TRACE(std::string(ToString(dispatch)) + " " + ToString(tier));
      ExpectSameLosses(dispatch, tier);
    }
  }
}

TEST_F(CudaTraceTest, HasTheSameLossesWhereRowsAreBroughtAsStepsNeedThem) {
  ExpectSameLosses(Dispatch::kGraph, CudaTier::kLibrary,
                   /*table_limit_bytes=*/1);
}

TEST_F(CudaTraceTest, ItsCallsAreTheNodesLaidEndToEnd) {
  for (const CudaTier tier : {CudaTier::kLibrary, CudaTier::kFused}) {
    ASSERT_OK_AND_ASSIGN(const auto session, Session(Dispatch::kGraph, tier));
    std::vector<StepTrace> traces;
    ASSERT_OK(session->RunTraced(4, traces));
    ASSERT_EQ(traces.size(), 1);
    ASSERT_EQ(traces[0].workers.size(), 1);
    const StepTrace::Worker& worker = traces[0].workers[0];
    const Executable& executable = session->executable();
    EXPECT_EQ(worker.calls,
              std::ssize(session->compiled().cuda->program->Nodes()));
    ASSERT_EQ(worker.calls, std::ssize(executable.WorkerSteps(0)));
    EXPECT_EQ(worker.calls, std::ssize(executable.steps()) + 1);
    EXPECT_EQ(executable.WorkerSteps(0).back().phase, "boundary");
    ASSERT_EQ(std::ssize(worker.stamps), 4 * (worker.calls + 1));
    EXPECT_EQ(worker.stamps.front(), worker.begin);
    EXPECT_EQ(worker.stamps.back(), worker.end);
    EXPECT_LE(traces[0].begin, worker.begin);
    for (int64_t step = 0; step < 4; ++step) {
      for (int64_t call = 0; call < worker.calls; ++call) {
        EXPECT_LT(worker.at(step, call), worker.at(step, call + 1));
      }
      if (step == 0) continue;
      EXPECT_EQ(worker.at(step, 0), worker.at(step - 1, worker.calls));
    }
  }
}

// What is refused is not what ends a program.
TEST_F(CudaTraceTest, RefusesAKernelOfWholeStepsAndRunsOn) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kSingle, CudaTier::kPersistent));
  std::vector<StepTrace> traces;
  EXPECT_THAT(session->RunTraced(1, traces),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "run traced: a kernel runs whole steps"));
  EXPECT_OK(session->Run(1));
}

}  // namespace
}  // namespace onestep
