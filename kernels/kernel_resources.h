// SPDX-License-Identifier: Apache-2.0
// What the compiler says of the GPU kernels: written to a table when they are
// compiled (cmake/cuda.cmake). Empty where they are not, or not by nvcc.
#ifndef ONESTEP_KERNELS_KERNEL_RESOURCES_H_
#define ONESTEP_KERNELS_KERNEL_RESOURCES_H_

#include <span>

namespace onestep {

struct KernelResources {
  const char* name;    // "Scale<4>", no blanks; enumerators as numbers
  const char* symbol;  // in PTX, mangled
  int arch;            // 90
  int registers;       // of a thread
  int spill_bytes;     // of a thread, stored and loaded
  int shared_bytes;    // of a block, static
  int stack_bytes;     // of a thread
};

// A row per kernel and architecture, in order of both.
std::span<const KernelResources> AllKernelResources();

// Those of a kernel by Launch::name, on the newest architecture there is; null:
// it is not in the table.
const KernelResources* FindKernelResources(const char* name);

}  // namespace onestep

#endif  // ONESTEP_KERNELS_KERNEL_RESOURCES_H_
