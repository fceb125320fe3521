// SPDX-License-Identifier: Apache-2.0
// How it counts; that it passes everything on is in timed_cuda_under_test.cc.
#include "runtime/cuda/timed_cuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

auto Line(const char* call, int64_t calls) {
  return AllOf(Field(&CudaCallStats::call, call),
               Field(&CudaCallStats::calls, calls));
}

TEST(TimedCudaTest, TimesACallFromItsBeginningToItsReturn) {
  EmulatedCuda slow({.busy = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return true;
  }});
  TimedCuda cuda(slow);
  ASSERT_OK_AND_ASSIGN(const CudaApi::Stream stream, cuda.CreateStream());
  ASSERT_OK(cuda.Done(stream));
  ASSERT_OK(cuda.Done(stream));
  const std::vector<CudaCallStats> stats = cuda.Stats();
  // What took most comes first.
  EXPECT_THAT(stats, ElementsAre(Line("Done", 2), Line("CreateStream", 1)));
  EXPECT_GE(stats[0].total_us, 4000);
  cuda.DestroyStream(stream);
}

TEST(TimedCudaTest, CountsACallThatFails) {
  EmulatedCuda emulated;
  emulated.FailAt("Malloc", 1, kCudaOutOfMemory);
  TimedCuda cuda(emulated);
  EXPECT_THAT(cuda.Malloc(256), StatusIs(absl::StatusCode::kResourceExhausted,
                                         testing::HasSubstr("cudaMalloc")));
  EXPECT_THAT(cuda.Stats(), ElementsAre(Line("Malloc", 1)));
}

TEST(TimedCudaTest, CountsAnewAfterReset) {
  EmulatedCuda emulated;
  TimedCuda cuda(emulated);
  ASSERT_OK(cuda.Device());
  cuda.Reset();
  EXPECT_THAT(cuda.Stats(), IsEmpty());
  ASSERT_OK(cuda.FreeMemory());
  EXPECT_THAT(cuda.Stats(), ElementsAre(Line("FreeMemory", 1)));
}

TEST(TimedCudaTest, KnowsWhatItAddsToACall) {
  EmulatedCuda emulated;
  const TimedCuda cuda(emulated);
  EXPECT_GT(cuda.cost_us(), 0);
  EXPECT_THAT(cuda.Stats(), IsEmpty());
}

}  // namespace
}  // namespace onestep
