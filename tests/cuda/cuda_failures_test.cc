// SPDX-License-Identifier: Apache-2.0
// Whatever CUDA call fails, a run ends with a clear message and the right exit
// code, and leaves nothing behind; on the emulator only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/autotune.h"
#include "trainer/data/random_rows.h"
#include "trainer/exit_code.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A few steps on `cuda`, from compilation to the params on the host.
absl::Status Train(EmulatedCuda& cuda, Dispatch dispatch, CudaTier tier,
                   int64_t table_limit_bytes = 0) {
  const ModelSpec model{.widths = {16, 8, 3}};
  const Dataset data = RandomRows(20, 16, 3, /*seed=*/1);
  CompileOptions options;
  options.device = Device::kGpu;
  options.dispatch = dispatch;
  options.cuda.cuda = &cuda;
  options.cuda.tier = tier;
  options.cuda.steps_per_launch = 2;
  options.cuda.table_limit_bytes = table_limit_bytes;
  auto session = StepSession::Create(model, {}, options, data, /*batch=*/4);
  if (!session.ok()) return session.status();
  absl::Status status = (*session)->Run(3);
  status.Update((*session)->executable().ParamsToHost());
  // A failed program stays failed.
  if (!status.ok()) {
    EXPECT_FALSE((*session)->Run(1).ok());
  }
  return status;
}

void ExpectClean(const EmulatedCuda& cuda) {
  EXPECT_EQ(cuda.LiveObjects(), "");
  EXPECT_THAT(cuda.errors(), testing::IsEmpty());
}

TEST(CudaFailuresTest, NoDriver) {
  EmulatedCuda cuda;
  cuda.FailAt("Device", 1, kCudaInsufficientDriver);
  const absl::Status status = Train(cuda, Dispatch::kGraph, CudaTier::kLibrary);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("driver")));
  EXPECT_EQ(ExitCodeOf(status, 0), kExitUnavailable);
  ExpectClean(cuda);
}

TEST(CudaFailuresTest, OutOfMemory) {
  EmulatedCudaOptions small;
  small.device.memory_bytes = 1000;
  EmulatedCuda cuda(small);
  const absl::Status status = Train(cuda, Dispatch::kGraph, CudaTier::kFused);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("cudaMalloc of"), HasSubstr("free"))));
  EXPECT_EQ(ExitCodeOf(status, 0), kExitUnavailable);
  ExpectClean(cuda);
}

TEST(CudaFailuresTest, AutoDoesWithoutAWayThatHasNoMemory) {
  const TempFolder folder;
  setenv("ONESTEP_CACHE", folder.path().c_str(), 1);
  EmulatedCuda cuda;
  cuda.FailAt("Malloc", 1, kCudaOutOfMemory);
  Config config;
  config.model.widths = {16, 8, 3};
  config.batch = 4;
  config.compile.device = Device::kGpu;
  config.compile.dispatch = Dispatch::kAuto;
  config.compile.cuda.cuda = &cuda;
  ASSERT_OK_AND_ASSIGN(const AutoChoice choice,
                       SettleAuto(config, RandomRows(20, 16, 3, /*seed=*/1)));
  EXPECT_FALSE(choice.candidates.empty());
  EXPECT_THAT(choice.refused, testing::Contains(HasSubstr("out of memory")));
  unsetenv("ONESTEP_CACHE");
  ExpectClean(cuda);
}

TEST(CudaFailuresTest, AnInvalidatedCaptureNamesTheNode) {
  for (const int code : {kCudaCaptureUnsupported, kCudaCaptureInvalidated,
                         kCudaCaptureImplicit}) {
    EmulatedCuda cuda;
    cuda.FailAt("EndCapture", 2, code);
    const absl::Status status =
        Train(cuda, Dispatch::kGraph, CudaTier::kLibrary);
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("graph node"), HasSubstr("matmul"),
                               HasSubstr(absl::StrCat("(", code, ")")))));
    EXPECT_EQ(ExitCodeOf(status, 0), kExitInternal);
    ExpectClean(cuda);
  }
}

TEST(CudaFailuresTest, AKernelThatFailsEndsTheRun) {
  for (const auto& [dispatch, tier] :
       {std::pair{Dispatch::kOps, CudaTier::kLibrary},
        std::pair{Dispatch::kGraph, CudaTier::kLibrary},
        std::pair{Dispatch::kSingle, CudaTier::kPersistent}}) {
    EmulatedCuda cuda;
    cuda.FailAt("RunKernel", 1, kCudaLaunchFailure);
    const absl::Status status = Train(cuda, dispatch, tier);
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("device gpu: "), HasSubstr("(719)"))));
    EXPECT_EQ(ExitCodeOf(status, 0), kExitInternal);
    ExpectClean(cuda);
  }
}

// Every call, the first, second and fifth time it is made; with all rows on
// the device, and with those of a step at a time.
TEST(CudaFailuresTest, AnyCallMayFail) {
  for (const auto& [dispatch, tier, limit] :
       {std::tuple{Dispatch::kOps, CudaTier::kLibrary, 0},
        std::tuple{Dispatch::kGraph, CudaTier::kLibrary, 0},
        std::tuple{Dispatch::kGraph, CudaTier::kFused, 0},
        std::tuple{Dispatch::kGraph, CudaTier::kFused, 1},
        std::tuple{Dispatch::kSingle, CudaTier::kPersistent, 0}}) {
    EmulatedCuda whole;
    ASSERT_OK(Train(whole, dispatch, tier, limit));
    ExpectClean(whole);
    for (const char* call :
         {"Device",       "FreeMemory",    "Malloc",     "MallocHost",
          "CopyToDevice", "CopyToHost",    "Memset",     "CreateStream",
          "Synchronize",  "Done",          "Preload",    "MaxActiveClusters",
          "LaunchKernel", "CreateGraph",   "AddKernel",  "AddChildGraph",
          "BeginCapture", "EndCapture",    "Nodes",      "Instantiate",
          "LaunchGraph",  "MatMulLibrary", "PlanMatMul", "RunMatMul",
          "CreateEvent",  "Record",        "Wait",       "WaitOnHost"}) {
      for (const int nth : {1, 2, 5}) {
        // The last ones are of destructors, which have no one to tell.
        if (nth == 5 && absl::string_view(call) == "Synchronize") continue;
        SCOPED_TRACE(absl::StrCat(call, " ", nth, " of tier ", ToString(tier)));
        int made = 0;
        for (const CudaCall& c : whole.log().calls()) made += c.name == call;
        EmulatedCuda cuda;
        cuda.FailAt(call, nth, absl::InternalError("injected"));
        const absl::Status status = Train(cuda, dispatch, tier, limit);
        if (made >= nth) {
          EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                                       HasSubstr("injected")));
        } else {
          EXPECT_OK(status);
        }
        ExpectClean(cuda);
      }
    }
  }
}

TEST(CudaFailuresTest, AnyCallOfATracedRunMayFail) {
  const Dataset data = RandomRows(20, 16, 3, /*seed=*/1);
  for (const char* call : {"CreateEvent", "Elapsed", "LaunchKernel", "Record",
                           "RunMatMul", "Synchronize", "WaitOnHost"}) {
    SCOPED_TRACE(call);
    EmulatedCuda cuda;
    CompileOptions options;
    options.device = Device::kGpu;
    options.cuda.cuda = &cuda;
    options.cuda.tier = CudaTier::kLibrary;
    {
      ASSERT_OK_AND_ASSIGN(
          const auto session,
          StepSession::Create({.widths = {16, 8, 3}}, {}, options, data, 4));
      ASSERT_OK(session->Run(1));
      cuda.FailAt(call, 2, absl::InternalError("injected"));
      std::vector<StepTrace> traces;
      EXPECT_THAT(
          session->RunTraced(3, traces),
          StatusIs(absl::StatusCode::kInternal, "device gpu: injected"));
      EXPECT_FALSE(session->Run(1).ok());
    }
    ExpectClean(cuda);
  }
}

}  // namespace
}  // namespace onestep
