// SPDX-License-Identifier: Apache-2.0
// Linked instead of cuda_devices.cc when CUDA was not found.
#include "runtime/cuda/cuda_devices.h"

namespace onestep {

absl::StatusOr<std::vector<std::string>> CudaDevices() {
  return absl::UnavailableError("device gpu: built without CUDA");
}

std::string CudaRuntimeVersion() { return "none"; }

}  // namespace onestep
