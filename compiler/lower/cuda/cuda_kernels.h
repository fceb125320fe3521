// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_CUDA_CUDA_KERNELS_H_
#define ONESTEP_COMPILER_LOWER_CUDA_CUDA_KERNELS_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/lower/memory_plan.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"
#include "runtime/cuda/cuda_bindings.h"

namespace onestep {

// A kernel of ours for slots of memory.
struct CudaKernel {
  std::function<Launch(const CudaBindings&, void* workspace)> launch;
  int64_t workspace_bytes = 0;  // of its own, zeroed once
};

// The kernel (kernels/cuda) for the node; Unimplemented, naming the op, when
// there is none. Matmuls too.
absl::StatusOr<CudaKernel> MakeCudaKernel(const MemoryPlan& plan, Node& node);

// Of slots, for what an op needs besides its kernel.
CudaKernel CopyKernel(int from, int to, int64_t bytes);
CudaKernel ActivateKernel(Activation activation, int slot, int64_t n);
CudaKernel AddKernelOf(int a, int b, int y, int64_t n);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_KERNELS_H_
