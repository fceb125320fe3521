// SPDX-License-Identifier: Apache-2.0
// Stands in for the CUDA lowering, which is chosen when linking.
#include "absl/strings/str_cat.h"
#include "compiler/lower/lower.h"
#include "runtime/cuda_devices.h"
#include "runtime/status.h"

namespace onestep {

absl::StatusOr<std::unique_ptr<Executable>> LowerToCuda(const Graph&) {
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, CudaDevices());
  return absl::UnimplementedError(
      absl::StrCat("device gpu: ", devices.front(),
                   " found, but this version has no GPU lowering"));
}

}  // namespace onestep
