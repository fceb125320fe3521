// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_graph.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

absl::Status Annotate(const absl::Status& status, const CudaNode& node,
                      int index) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("graph node ", index, " (", node.label,
                                   "): ", status.message()));
}

// The work of a library's matmul; its nodes are the library's business, but
// for what a child graph must not hold.
absl::StatusOr<CudaGraph> Capture(CudaApi& cuda, CudaApi::Stream stream,
                                  const CudaNode& node) {
  RETURN_IF_ERROR(cuda.BeginCapture(stream));
  const absl::Status run = cuda.RunMatMul(node.plan, node.operands, stream);
  // Ends the capture whatever happened, so that the stream can be used again.
  absl::StatusOr<CudaGraph> child =
      Own<CudaGraph>(cuda, cuda.EndCapture(stream));
  RETURN_IF_ERROR(run);
  RETURN_IF_ERROR(child.status());
  ASSIGN_OR_RETURN(const auto kinds, cuda.Nodes(child->get()));
  for (const CudaApi::NodeInfo& info : kinds) {
    if (info.kind == "kernel" || info.kind == "memset") continue;
    return absl::InternalError(
        absl::StrCat("want kernels and memsets, captured a ", info.kind));
  }
  return child;
}

}  // namespace

std::vector<std::vector<int>> DependenciesOf(absl::Span<const CudaNode> nodes) {
  struct Place {
    int writer = -1;
    std::vector<int> readers;  // since
  };
  std::map<int, Place> places;
  std::vector<std::vector<int>> all;
  std::vector<std::vector<bool>> before;  // all that run before, transitively
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    std::set<int> wanted;
    for (const int p : nodes[i].reads) {
      if (places[p].writer >= 0) wanted.insert(places[p].writer);
    }
    for (const int p : nodes[i].writes) {
      if (places[p].writer >= 0) wanted.insert(places[p].writer);
      wanted.insert(places[p].readers.begin(), places[p].readers.end());
    }
    std::vector<int>& mine = all.emplace_back();
    std::vector<bool>& mine_before = before.emplace_back(i);
    // The latest first: what it waits for is then known to be waited for.
    for (auto d = wanted.rbegin(); d != wanted.rend(); ++d) {
      if (mine_before[*d]) continue;
      mine.insert(mine.begin(), *d);
      mine_before[*d] = true;
      for (int e = 0; e < *d; ++e) {
        if (before[*d][e]) mine_before[e] = true;
      }
    }
    for (const int p : nodes[i].reads) places[p].readers.push_back(i);
    for (const int p : nodes[i].writes) places[p] = {i, {}};
  }
  return all;
}

bool IsProgrammatic(absl::Span<const CudaNode> nodes,
                    const std::vector<int>& dependencies, int i) {
  return dependencies.size() == 1 && !nodes[dependencies[0]].library &&
         !nodes[i].library && nodes[i].launch.waits;
}

absl::StatusOr<CudaGraph> BuildCudaGraph(CudaApi& cuda, CudaApi::Stream stream,
                                         absl::Span<const CudaNode> nodes) {
  ASSIGN_OR_RETURN(CudaGraph graph, Own<CudaGraph>(cuda, cuda.CreateGraph()));
  const std::vector<std::vector<int>> dependencies = DependenciesOf(nodes);
  std::vector<CudaApi::Node> handles;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const CudaNode& node = nodes[i];
    const bool programmatic = IsProgrammatic(nodes, dependencies[i], i);
    std::vector<CudaApi::Edge> edges;
    for (const int d : dependencies[i]) {
      edges.push_back({handles[d], programmatic});
    }
    absl::StatusOr<CudaApi::Node> handle;
    if (node.library) {
      absl::StatusOr<CudaGraph> child = Capture(cuda, stream, node);
      handle = child.ok() ? cuda.AddChildGraph(graph.get(), edges, child->get())
                          : child.status();
    } else {
      handle = cuda.AddKernel(graph.get(), edges, node.launch);
    }
    RETURN_IF_ERROR(Annotate(handle.status(), node, i + 1));
    handles.push_back(*handle);
  }
  return graph;
}

absl::Status LaunchNode(CudaApi& cuda, CudaApi::Stream stream,
                        const CudaNode& node) {
  return node.library ? cuda.RunMatMul(node.plan, node.operands, stream)
                      : cuda.LaunchKernel(node.launch, stream);
}

}  // namespace onestep
