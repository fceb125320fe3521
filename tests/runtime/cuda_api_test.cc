// SPDX-License-Identifier: Apache-2.0
// What CUDA, or the stub, answers without a device.
#include "runtime/cuda/cuda_api.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_devices.h"
#include "runtime/cuda/cuda_handle.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

class CudaWithoutDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CudaDevices().ok()) GTEST_SKIP() << "this machine has a GPU";
  }
  CudaApi& cuda_ = RealCuda();
};

TEST_F(CudaWithoutDeviceTest, DeviceSaysWhy) {
  EXPECT_THAT(cuda_.Device().status(), StatusIs(absl::StatusCode::kUnavailable,
                                                HasSubstr("device gpu: ")));
  EXPECT_EQ(cuda_.Device().status(), CudaDevices().status());
}

TEST_F(CudaWithoutDeviceTest, EveryResourceIsUnavailableForTheSameReason) {
  const absl::Status why = CudaDevices().status();
  EXPECT_EQ(cuda_.FreeMemory().status(), why);
  EXPECT_EQ(cuda_.Malloc(256).status(), why);
  EXPECT_EQ(cuda_.MallocHost(256).status(), why);
  EXPECT_EQ(cuda_.CreateStream().status(), why);
  EXPECT_EQ(cuda_.CreateEvent().status(), why);
  EXPECT_EQ(cuda_.MatMulLibrary().status(), why);
  EXPECT_EQ(
      cuda_.PlanMatMul({.m = 1, .n = 1, .k = 1}, nullptr, 0, nullptr).status(),
      why);
}

TEST_F(CudaWithoutDeviceTest, OwnGivesTheErrorOfTheCall) {
  EXPECT_EQ(Own<CudaStream>(cuda_, cuda_.CreateStream()).status(),
            CudaDevices().status());
}

TEST(CudaDeviceTest, ToStringIsTheLineOfInfo) {
  CudaDevice device;
  device.name = "NVIDIA H200";
  device.multiprocessors = 132;
  device.compute_major = 9;
  device.memory_bytes = int64_t{139} << 30;
  EXPECT_EQ(device.ToString(), "NVIDIA H200, 132 SMs, sm_90, 139 GiB");
}

}  // namespace
}  // namespace onestep
