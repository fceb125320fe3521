// SPDX-License-Identifier: Apache-2.0
// For the files that call the CUDA runtime itself.
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_STATUS_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cuda/cuda_api.h"

namespace onestep {

// Ok, or an error as cuda_api.h says: "cudaGraphLaunch: unspecified launch
// failure (719), and the device accepts no further calls". Clears the error.
absl::Status CudaStatus(absl::string_view call, cudaError_t error);

// Unavailable: there is none, with the reason.
absl::StatusOr<int> CudaDeviceCount();
absl::StatusOr<CudaDevice> DescribeCudaDevice(int index);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_STATUS_H_
