// SPDX-License-Identifier: Apache-2.0
// Linked where nvcc compiled no kernels.
#include "kernels/kernel_resources.h"

namespace onestep {

std::span<const KernelResources> AllKernelResources() { return {}; }

}  // namespace onestep
