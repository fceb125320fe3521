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

// One op of a step on a GPU: its node, once the addresses are known.
struct CudaOp {
  StepInfo info;
  std::function<CudaNode(const CudaBindings&)> node;
};

// A graph op by op: what CudaSpec takes, but for how steps are launched.
struct CudaOps {
  std::vector<CudaSlot> slots;
  std::vector<CudaTable> tables;
  int64_t arena_bytes = 0, workspace_bytes = 0;
  std::vector<std::pair<int, float>> constants;
  std::vector<CudaOp> ops;
  int library = 0;                 // ops that are the library's matmuls
  std::vector<std::string> notes;  // epilogues that were not had, and why
  std::string plan;
};

// How matmuls are lowered.
struct CudaMatMulChoice {
  MathMode math = MathMode::kFp32;
  bool library = true;    // else our own kernel
  bool gradients = true;  // epilogues that join a matmul with other ops
  // The library's plan; Unimplemented: it has no algorithm.
  std::function<absl::StatusOr<CudaApi::MatMulPlan>(const CudaMatMul&)> plan;
  // What it chose, in words; "": nothing yet.
  std::function<std::string(CudaApi::MatMulPlan)> describe;
};

// One op per node of the graph, but where an epilogue of the library's matmul
// takes in the relu gradient after it, its bias gradient or a column sum.
// Adds copying nodes to `graph` where outputs need them. Unimplemented, naming
// the op, when a GPU cannot run it.
absl::StatusOr<CudaOps> LowerCudaOps(Graph& graph,
                                     const CudaMatMulChoice& matmuls);

// Places of memory in CudaNode::reads and writes that are no slot.
inline constexpr int kControlPlace = -1;
inline constexpr int kLibraryPlace = -2;  // its workspace
// Of a kernel's workspace that begins at `offset`.
constexpr int WorkspacePlace(int64_t offset) {
  return -3 - static_cast<int>(offset / kBufferAlignment);
}

// The nodes at the end of a step that publish what advances, count the step
// and fetch the next one's inputs; with `begin` those before the first.
std::vector<CudaNode> BoundaryNodes(const CudaBindings& bindings, bool begin);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_OPS_H_
