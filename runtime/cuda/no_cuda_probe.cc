// SPDX-License-Identifier: Apache-2.0
// Linked instead of cuda_probe.cc where there are no GPU kernels.
#include "runtime/base/status.h"
#include "runtime/cuda/cuda_probe.h"

namespace onestep {

absl::StatusOr<CudaProbe> RunCudaProbe(CudaApi& cuda, const CudaProbeOptions&) {
  RETURN_IF_ERROR(cuda.Device().status());
  return absl::UnavailableError("device gpu: built without its kernels");
}

}  // namespace onestep
