// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/cuda_device.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace onestep {

void CudaTest::SetUp() {
  auto device = MakeCudaDeviceUnderTest(/*seed=*/1);
  if (device.ok()) {
    device_ = *std::move(device);
    return;
  }
  const char* const require = std::getenv("ONESTEP_REQUIRE_CUDA");
  if (require != nullptr && std::strcmp(require, "1") == 0) {
    FAIL() << device.status();
  }
  GTEST_SKIP() << "NOT TESTED ON A GPU: " << device.status();
}

void CudaTest::TearDown() {
  if (device_ != nullptr) device_->ExpectClean();
}

}  // namespace onestep
