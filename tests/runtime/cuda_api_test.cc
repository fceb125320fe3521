// SPDX-License-Identifier: Apache-2.0
// What CUDA answers without a device, and a build without CUDA.
#include "runtime/cuda/cuda_api.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_handle.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

TEST(FindCudaTest, WithoutCudaSaysSo) {
  const absl::StatusOr<CudaApi*> cuda = FindCuda();
  if (cuda.ok()) GTEST_SKIP() << "built with CUDA";
  EXPECT_EQ(cuda.status(),
            absl::UnavailableError("device gpu: built without CUDA"));
}

class CudaWithoutDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<CudaApi*> cuda = FindCuda();
    if (!cuda.ok()) GTEST_SKIP() << cuda.status();
    cuda_ = *cuda;
    why_ = cuda_->Device().status();
    if (why_.ok()) GTEST_SKIP() << "this machine has a GPU";
  }

  CudaApi* cuda_ = nullptr;
  absl::Status why_;
};

TEST_F(CudaWithoutDeviceTest, DeviceSaysWhy) {
  EXPECT_THAT(why_, StatusIs(absl::StatusCode::kUnavailable,
                             HasSubstr("device gpu: ")));
  EXPECT_EQ(cuda_->Devices().status(), why_);
  EXPECT_NE(cuda_->RuntimeVersion(), "unknown");
}

TEST_F(CudaWithoutDeviceTest, EveryResourceIsUnavailableForTheSameReason) {
  EXPECT_EQ(cuda_->FreeMemory().status(), why_);
  EXPECT_EQ(cuda_->Malloc(256).status(), why_);
  EXPECT_EQ(cuda_->MallocHost(256).status(), why_);
  EXPECT_EQ(cuda_->CreateStream().status(), why_);
  EXPECT_EQ(cuda_->CreateEvent().status(), why_);
  EXPECT_EQ(cuda_->MatMulLibrary().status(), why_);
  EXPECT_EQ(
      cuda_->PlanMatMul({.m = 1, .n = 1, .k = 1}, nullptr, 0, nullptr).status(),
      why_);
}

TEST_F(CudaWithoutDeviceTest, OwnGivesTheErrorOfTheCall) {
  EXPECT_EQ(Own<CudaStream>(*cuda_, cuda_->CreateStream()).status(), why_);
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
