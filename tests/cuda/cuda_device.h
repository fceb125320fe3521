// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_CUDA_CUDA_DEVICE_H_
#define ONESTEP_TESTS_CUDA_CUDA_DEVICE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "runtime/cuda/cuda_api.h"

namespace onestep {

// What the tests of the GPU lowering run on, chosen when linking: the emulator
// with kernels that g++ compiled, or a GPU with those of nvcc.
class CudaDeviceUnderTest {
 public:
  virtual ~CudaDeviceUnderTest() = default;
  virtual CudaApi& cuda() = 0;
  virtual bool emulated() const = 0;
  // Nothing is left allocated and nothing was misused, as far as can be told.
  virtual void ExpectClean() = 0;
};

// Unavailable: there is no device.
absl::StatusOr<std::unique_ptr<CudaDeviceUnderTest>> MakeCudaDeviceUnderTest(
    uint64_t seed);

// Skips, loudly, without a device; fails when ONESTEP_REQUIRE_CUDA is 1.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  CudaApi& cuda() { return device_->cuda(); }
  bool emulated() const { return device_->emulated(); }

 private:
  std::unique_ptr<CudaDeviceUnderTest> device_;
};

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_CUDA_DEVICE_H_
