// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_resources.h"

#include <string_view>

namespace onestep {

const KernelResources* FindKernelResources(const char* name) {
  const KernelResources* found = nullptr;
  for (const KernelResources& row : AllKernelResources()) {
    if (row.name == std::string_view(name)) found = &row;
  }
  return found;
}

}  // namespace onestep
