// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_DEVICES_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace onestep {

// A line per usable GPU: "NVIDIA H200, 132 SMs, sm_90, 139 GiB"; never empty.
// Unavailable with the reason: no driver, no device, built without CUDA.
absl::StatusOr<std::vector<std::string>> CudaDevices();

// Of the CUDA runtime that was linked, "13.0"; "none" when there is none.
std::string CudaRuntimeVersion();

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_DEVICES_H_
