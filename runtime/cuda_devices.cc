// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda_devices.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace onestep {

absl::StatusOr<std::vector<std::string>> CudaDevices() {
  const auto unavailable = [](cudaError_t error) {
    if (error == cudaErrorInsufficientDriver) {  // also when there is none
      return absl::UnavailableError("device gpu: no NVIDIA driver for CUDA " +
                                    CudaRuntimeVersion());
    }
    return absl::UnavailableError(
        absl::StrCat("device gpu: ", cudaGetErrorString(error)));
  };
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count);
      error != cudaSuccess) {
    return unavailable(error);
  }
  if (count == 0) return absl::UnavailableError("device gpu: no CUDA device");
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p;
    if (const cudaError_t error = cudaGetDeviceProperties(&p, i);
        error != cudaSuccess) {
      return unavailable(error);
    }
    lines.push_back(absl::StrFormat("%s, %d SMs, sm_%d%d, %d GiB", p.name,
                                    p.multiProcessorCount, p.major, p.minor,
                                    p.totalGlobalMem >> 30));
  }
  return lines;
}

std::string CudaRuntimeVersion() {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return "unknown";
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace onestep
