// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/status.h"
#include "tests/cuda/cuda_device.h"

namespace onestep {
namespace {

class RealDevice final : public CudaDeviceUnderTest {
 public:
  CudaApi& cuda() override { return RealCuda(); }
  bool emulated() const override { return false; }
  void ExpectClean() override {}
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDeviceUnderTest>> MakeCudaDeviceUnderTest(
    uint64_t) {
  RETURN_IF_ERROR(RealCuda().Device().status());
  return std::make_unique<RealDevice>();
}

}  // namespace onestep
