// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_resources.h"

#include <string>

namespace onestep {

const KernelResources* FindKernelResources(const char* name) {
  std::string wanted;
  for (const char* c = name; *c != '\0'; ++c) {
    if (*c != ' ') wanted += *c;
  }
  const KernelResources* found = nullptr;
  for (const KernelResources& row : AllKernelResources()) {
    if (row.name == wanted) found = &row;
  }
  return found;
}

}  // namespace onestep
