// SPDX-License-Identifier: Apache-2.0
// Makes a CUDA graph from a list of nodes. The edges follow from what each node
// declares to read and write.
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_GRAPH_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/launch.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_handle.h"

namespace onestep {

// One kernel of ours, or one matmul of the library.
struct CudaNode {
  std::string label;  // "matmul", "loss_grad": of the op
  Launch launch;      // when `plan` is null and this is no library's matmul
  bool library = false;
  CudaMatMul matmul;  // when `library`
  CudaApi::MatMulPlan plan = nullptr;
  CudaMatMulOperands operands;
  // Places of memory, by any numbering. Of two nodes that share one and do not
  // both only read it, the later in the list runs after the earlier.
  std::vector<int> reads, writes;
};

// For each node the earlier ones it must wait for, ascending, without those
// that the others among them wait for, directly or not.
std::vector<std::vector<int>> DependenciesOf(absl::Span<const CudaNode> nodes);

// Whether node i's edge is programmatic: it begins early and waits by itself.
// Only a kernel of ours with a single edge, from a kernel.
bool IsProgrammatic(absl::Span<const CudaNode> nodes,
                    const std::vector<int>& dependencies, int i);

// Kernels must be preloaded. A library's matmul is captured on `stream` and
// becomes a child graph; an error names the node.
absl::StatusOr<CudaGraph> BuildCudaGraph(CudaApi& cuda, CudaApi::Stream stream,
                                         absl::Span<const CudaNode> nodes);

// Runs the node on the stream, as it would in a graph.
absl::Status LaunchNode(CudaApi& cuda, CudaApi::Stream stream,
                        const CudaNode& node);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_GRAPH_H_
