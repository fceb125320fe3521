// SPDX-License-Identifier: Apache-2.0
// For the files that call the CUDA runtime itself.
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_STATUS_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace onestep {

// Ok, or an error as cuda_api.h says: "cudaGraphLaunch: unspecified launch
// failure (719), and the device accepts no further calls". Clears CUDA's error.
absl::Status CudaStatus(absl::string_view call, cudaError_t error);

// Unavailable, with the reason: a call that asks for a device gave this error.
absl::Status NoCudaDevice(cudaError_t error);

// "13.0" for 13000; of the CUDA runtime that was linked.
std::string CudaVersionName(int version);
std::string CudaRuntimeVersion();

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_STATUS_H_
