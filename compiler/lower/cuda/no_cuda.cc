// SPDX-License-Identifier: Apache-2.0
// What a build without CUDA answers to whatever asks for a GPU.
#include "compiler/lower/lower.h"
#include "runtime/cuda/cuda_probe.h"

namespace onestep {

absl::StatusOr<CudaApi*> FindCuda() {
  return absl::UnavailableError("device gpu: built without CUDA");
}

absl::StatusOr<CudaProbe> RunCudaProbe(CudaApi&, const CudaProbeOptions&) {
  return FindCuda().status();
}

absl::StatusOr<std::unique_ptr<CudaProgram>> LowerToCuda(Graph&,
                                                         const CudaRequest&,
                                                         const CudaOptions&,
                                                         CudaReport&) {
  return FindCuda().status();
}

}  // namespace onestep
