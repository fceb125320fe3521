// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/status.h"
#include "tests/cuda/cuda_device.h"

namespace onestep {
namespace {

class RealDevice final : public CudaDeviceUnderTest {
 public:
  explicit RealDevice(CudaApi& cuda) : cuda_(cuda) {}
  CudaApi& cuda() override { return cuda_; }
  bool emulated() const override { return false; }
  void ExpectClean() override {}

 private:
  CudaApi& cuda_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDeviceUnderTest>> MakeCudaDeviceUnderTest(
    uint64_t) {
  ASSIGN_OR_RETURN(CudaApi* const cuda, FindCuda());
  RETURN_IF_ERROR(cuda->Device().status());
  return std::make_unique<RealDevice>(*cuda);
}

}  // namespace onestep
