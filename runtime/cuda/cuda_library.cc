// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace onestep {

absl::StatusOr<void*> OpenCudaLibrary(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const std::string reason = dlerror();
  if (name.find('/') == std::string::npos) {
    for (const char* folder : {"/", "/../extras/CUPTI/lib64/"}) {
      library =
          dlopen(absl::StrCat(ONESTEP_CUDA_LIBRARY_DIR, folder, name).c_str(),
                 RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) return library;
    }
  }
  return absl::UnavailableError(reason);
}

}  // namespace onestep
