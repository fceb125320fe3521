// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_CUDA_CUDA_REPORT_H_
#define ONESTEP_COMPILER_LOWER_CUDA_CUDA_REPORT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler/lower/cuda/cuda_occupancy.h"
#include "kernels/cuda/hidden_split/tier.h"

namespace onestep {

struct CudaNode;
class CudaProgram;

// What a graph became on a GPU.
struct CudaReport {
  CudaTier tier = CudaTier::kLibrary;  // what kAuto led to
  std::string device;
  // The tiers and epilogues that were refused, and why.
  std::vector<std::string> notes;
  std::string nodes;               // of a launch: CudaNodesText
  std::string nodes_dot;           // of a launch: CudaNodesDot
  CudaOccupancyReport occupancy;   // of a launch
  CudaProgram* program = nullptr;  // the executable
};

// The nodes of a launch as a table: a line each with kernel, grid, block,
// cluster, dynamic shared memory, registers as the compiler reported them, and
// the nodes it runs after; "~" before one that it may overlap with.
std::string CudaNodesText(absl::Span<const CudaNode> nodes);
// The same for Graphviz.
std::string CudaNodesDot(absl::Span<const CudaNode> nodes);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_REPORT_H_
