// SPDX-License-Identifier: Apache-2.0
// Stands in for lower_cuda.cc where CUDA was not found; chosen when linking.
#include "compiler/lower/lower.h"

namespace onestep {

absl::StatusOr<LoweredCuda> LowerToCuda(Graph&, const CudaRequest&,
                                        const CudaOptions&) {
  return absl::UnavailableError("device gpu: built without CUDA");
}

}  // namespace onestep
