// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/cuda_device.h"

#include <utility>

#include "tests/require_cuda.h"

namespace onestep {

void CudaTest::SetUp() {
  auto device = MakeCudaDeviceUnderTest(/*seed=*/1);
  if (device.ok()) {
    device_ = *std::move(device);
    return;
  }
  ASSERT_FALSE(CudaIsRequired()) << device.status();
  GTEST_SKIP() << "NOT TESTED ON A GPU: " << device.status();
}

void CudaTest::TearDown() {
  if (device_ != nullptr) device_->ExpectClean();
}

}  // namespace onestep
