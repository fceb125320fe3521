// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_CUDA_CUDA_REPORT_H_
#define ONESTEP_COMPILER_LOWER_CUDA_CUDA_REPORT_H_

#include <string>

#include "absl/types/span.h"
#include "runtime/cuda/cuda_graph.h"

namespace onestep {

// The nodes of a launch for people: a line each with kernel, grid, block,
// cluster, dynamic shared memory, registers as the compiler reported them, and
// the nodes it runs after; "~" before one that it may overlap with.
std::string CudaNodesText(absl::Span<const CudaNode> nodes);
// For Graphviz.
std::string CudaNodesDot(absl::Span<const CudaNode> nodes);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_REPORT_H_
