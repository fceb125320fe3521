// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_join.h"
#include "tests/cuda/cuda_device.h"
#include "tests/cuda_emulator/emulated_cuda.h"

namespace onestep {
namespace {

class EmulatedDevice final : public CudaDeviceUnderTest {
 public:
  explicit EmulatedDevice(uint64_t seed) : cuda_({.seed = seed}) {}
  CudaApi& cuda() override { return cuda_; }
  bool emulated() const override { return true; }
  void ExpectClean() override {
    EXPECT_EQ(cuda_.LiveObjects(), "");
    EXPECT_EQ(absl::StrJoin(cuda_.errors(), "\n"), "");
  }

 private:
  EmulatedCuda cuda_;
};

}  // namespace

absl::StatusOr<CudaApi*> FindCuda() {
  return absl::UnavailableError("device gpu: this test names its own CUDA");
}

absl::StatusOr<std::unique_ptr<CudaDeviceUnderTest>> MakeCudaDeviceUnderTest(
    uint64_t seed) {
  return std::make_unique<EmulatedDevice>(seed);
}

}  // namespace onestep
