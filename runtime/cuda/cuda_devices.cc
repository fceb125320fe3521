// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_devices.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/cuda/cuda_status.h"

namespace onestep {
namespace {

std::string VersionName(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::Status Unavailable(cudaError_t error) {
  if (error == cudaErrorInsufficientDriver) {  // also when there is none
    return absl::UnavailableError("device gpu: no NVIDIA driver for CUDA " +
                                  CudaRuntimeVersion());
  }
  return absl::UnavailableError(
      absl::StrCat("device gpu: ", cudaGetErrorString(error)));
}

// Errors after which the process can use the device no more; the others leave
// it as it was.
bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorContextIsDestroyed:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status CudaStatus(absl::string_view call, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    return Unavailable(error);
  }
  std::string text =
      absl::StrCat(call, ": ", cudaGetErrorString(error), " (", error, ")");
  if (error == cudaErrorMemoryAllocation) {
    return absl::ResourceExhaustedError(text);
  }
  if (IsSticky(error)) text += ", and the device accepts no further calls";
  return absl::InternalError(text);
}

absl::StatusOr<int> CudaDeviceCount() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count);
      error != cudaSuccess) {
    return Unavailable(error);
  }
  if (count == 0) return absl::UnavailableError("device gpu: no CUDA device");
  return count;
}

absl::StatusOr<CudaDevice> DescribeCudaDevice(int index) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, index);
      error != cudaSuccess) {
    return Unavailable(error);
  }
  int driver = 0;
  RETURN_IF_ERROR(
      CudaStatus("cudaDriverGetVersion", cudaDriverGetVersion(&driver)));
  CudaDevice device;
  device.name = properties.name;
  device.multiprocessors = properties.multiProcessorCount;
  device.compute_major = properties.major;
  device.compute_minor = properties.minor;
  device.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  device.max_shared_bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
  device.runtime_version = CudaRuntimeVersion();
  device.driver_version = VersionName(driver);
  return device;
}

absl::StatusOr<std::vector<std::string>> CudaDevices() {
  ASSIGN_OR_RETURN(const int count, CudaDeviceCount());
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const CudaDevice device, DescribeCudaDevice(i));
    lines.push_back(device.ToString());
  }
  return lines;
}

std::string CudaRuntimeVersion() {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return "unknown";
  return VersionName(version);
}

}  // namespace onestep
