// SPDX-License-Identifier: Apache-2.0
// The emulator behind TimedCuda, which must change nothing, and in the end
// must have counted what the emulator was called for.
#include <gtest/gtest.h>

#include "runtime/cuda/timed_cuda.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/runtime/cuda_under_test.h"

namespace onestep {
namespace {

EmulatedCuda& Emulated() {
  static EmulatedCuda* const cuda = new EmulatedCuda;
  return *cuda;
}

TimedCuda& Timed() {
  static TimedCuda* const cuda = new TimedCuda(Emulated());
  return *cuda;
}

class CountsAreTheLogs : public testing::Environment {
  void TearDown() override {
    int64_t calls = 0;
    for (const CudaCallStats& stats : Timed().Stats()) {
      EXPECT_EQ(stats.calls, Emulated().log().Count(stats.call)) << stats.call;
      calls += stats.calls;
    }
    EXPECT_EQ(calls + Emulated().log().Count("LazyLoad"),
              std::ssize(Emulated().log().calls()));
  }
};

testing::Environment* const counts =
    testing::AddGlobalTestEnvironment(new CountsAreTheLogs);

}  // namespace

CudaApi& CudaUnderTest() { return Timed(); }

}  // namespace onestep
