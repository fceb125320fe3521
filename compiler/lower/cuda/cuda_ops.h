// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_CUDA_CUDA_OPS_H_
#define ONESTEP_COMPILER_LOWER_CUDA_CUDA_OPS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "runtime/base/buffer.h"
#include "runtime/base/executable.h"
#include "runtime/cuda/cuda_bindings.h"
#include "runtime/cuda/cuda_graph.h"

namespace onestep {

// One op of a step on a GPU. `node` makes its node for given addresses.
struct CudaOp {
  StepInfo info;
  std::function<CudaNode(const CudaBindings&)> node;
};

// A graph lowered op by op: CudaSpec without the way the steps are launched.
struct CudaOps {
  std::vector<CudaSlot> slots;
  std::vector<CudaTable> tables;
  int64_t arena_bytes = 0, workspace_bytes = 0;
  std::vector<std::pair<int, float>> constants;
  std::vector<CudaOp> ops;
  int library = 0;                 // ops that are the library's matmuls
  std::vector<std::string> notes;  // epilogues that the library lacks, and why
  std::string plan;
};

// How matmuls are lowered.
struct CudaMatMulChoice {
  MathMode math = MathMode::kFp32;
  bool library = true;    // else our own kernel
  bool gradients = true;  // epilogues that join a matmul with other ops
  // The library's plan; Unimplemented: it has no algorithm.
  std::function<absl::StatusOr<CudaApi::MatMulPlan>(const CudaMatMul&)> plan;
  // The algorithm that it chose, in words; "": none yet.
  std::function<std::string(CudaApi::MatMulPlan)> describe;
};

// Lowers every node to one op, except where an epilogue of the library's matmul
// also does the relu gradient after it, its bias gradient or a column sum.
// Adds copying nodes to `graph` where outputs need them. Unimplemented, naming
// the op, when a GPU cannot run it.
absl::StatusOr<CudaOps> LowerCudaOps(Graph& graph,
                                     const CudaMatMulChoice& matmuls);

// Places in CudaNode::reads and writes that are not slots.
inline constexpr int kControlPlace = -1;
inline constexpr int kLibraryPlace = -2;  // its workspace
// Of a kernel's workspace that begins at `offset`.
constexpr int WorkspacePlace(int64_t offset) {
  return -3 - static_cast<int>(offset / kBufferAlignment);
}

// The nodes at the end of a step. They store the step's results in their
// arrays, count the step and load the next step's inputs from theirs. With
// `begin`: the nodes before the first step, which only load.
std::vector<CudaNode> BoundaryNodes(const CudaBindings& bindings, bool begin);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_OPS_H_
