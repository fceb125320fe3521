// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_status.h"

#include "absl/strings/str_cat.h"

namespace onestep {
namespace {

// Whether the process can no longer use the device after this error.
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

std::string CudaRuntimeVersion() {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return "unknown";
  return CudaVersionName(version);
}

std::string CudaVersionName(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::Status NoCudaDevice(cudaError_t error) {
  if (error == cudaErrorInsufficientDriver) {  // also when there is none
    return absl::UnavailableError("device gpu: no NVIDIA driver for CUDA " +
                                  CudaRuntimeVersion());
  }
  return absl::UnavailableError(
      absl::StrCat("device gpu: ", cudaGetErrorString(error)));
}

absl::Status CudaStatus(absl::string_view call, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    return NoCudaDevice(error);
  }
  std::string text =
      absl::StrCat(call, ": ", cudaGetErrorString(error), " (", error, ")");
  if (error == cudaErrorMemoryAllocation) {
    return absl::ResourceExhaustedError(text);
  }
  if (IsSticky(error)) text += ", and the device accepts no further calls";
  return absl::InternalError(text);
}

}  // namespace onestep
