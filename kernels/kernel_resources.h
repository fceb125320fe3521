// SPDX-License-Identifier: Apache-2.0
// The resources of each GPU kernel as the compiler reports them. The table is
// generated when nvcc compiles the kernels (cmake/cuda.cmake); it is empty in
// every other build.
#ifndef ONESTEP_KERNELS_KERNEL_RESOURCES_H_
#define ONESTEP_KERNELS_KERNEL_RESOURCES_H_

#include <span>

namespace onestep {

struct KernelResources {
  const char* name;    // "Scale<4>": no blanks, enumerators as numbers
  const char* symbol;  // mangled name in PTX
  int arch;            // compute capability: 90
  int registers;       // per thread
  int spill_bytes;     // per thread, stores plus loads
  int shared_bytes;    // static shared memory per block
  int stack_bytes;     // per thread
};

// One row per kernel and architecture, sorted by name, then by architecture.
std::span<const KernelResources> AllKernelResources();

// The row of the kernel whose Launch::name is `name`, for the newest
// architecture in the table; nullptr when the table has no such kernel.
const KernelResources* FindKernelResources(const char* name);

}  // namespace onestep

#endif  // ONESTEP_KERNELS_KERNEL_RESOURCES_H_
