// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_LIBRARY_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"

namespace onestep {

// Loads one of CUDA's own libraries, for dlsym, and keeps it: a path, or a
// name, which is looked for where the loader does and then where CUDA was
// found when this was built. Unavailable: the loader's reason.
absl::StatusOr<void*> OpenCudaLibrary(const std::string& name);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_LIBRARY_H_
