// SPDX-License-Identifier: Apache-2.0
// Kernels and graphs of EmulatedCuda.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/cuda_emulator/emulator.h"

namespace onestep {
namespace {

std::vector<uintptr_t> WordsOf(const Launch& launch) {
  std::vector<uintptr_t> words;
  for (size_t at = 0; at + sizeof(uintptr_t) <= launch.args_bytes;
       at += sizeof(uintptr_t)) {
    std::memcpy(&words.emplace_back(), launch.args + at, sizeof(uintptr_t));
  }
  return words;
}

}  // namespace

// ---- kernels ---------------------------------------------------------------

absl::Status EmulatedCuda::CheckLaunch(const char* call,
                                       const Launch& launch) const {
  const CudaDevice& device = options_.device;
  const auto wrong = [&](int code, const std::string& why) {
    return CudaError(call, code, absl::StrCat(launch.name, ": ", why));
  };
  const int64_t blocks = launch.grid.size(), threads = launch.block.size();
  if (launch.kernel == nullptr || launch.emulated == nullptr) {
    return wrong(kCudaInvalidValue, "no kernel");
  }
  if (blocks < 1 || threads < 1 || threads > 1024) {
    return wrong(kCudaInvalidConfiguration,
                 absl::StrCat(blocks, " blocks of ", threads, " threads"));
  }
  if (int64_t{launch.shared_bytes} > device.max_shared_bytes) {
    return wrong(kCudaInvalidValue,
                 absl::StrCat(launch.shared_bytes, " bytes of shared memory, ",
                              device.max_shared_bytes, " of a block"));
  }
  if (launch.cluster < 1 || launch.cluster > 16 ||
      launch.grid.x % launch.cluster != 0 ||
      (launch.cluster > 1 && device.compute_major < 9)) {
    return wrong(kCudaInvalidClusterSize,
                 absl::StrCat("clusters of ", launch.cluster, " in a grid of ",
                              launch.grid.x, ", sm_", device.compute_major,
                              device.compute_minor));
  }
  return absl::OkStatus();
}

absl::Status EmulatedCuda::CheckLoaded(const char* call, const Launch& launch) {
  if (loaded_.count(launch.kernel) == 0) {
    if (Capturing()) {
      return Fail(call, kCudaCaptureUnsupported,
                  absl::StrCat(launch.name, " is not loaded"));
    }
    log_.Add({.name = "LazyLoad", .detail = launch.name});
  }
  const Loaded& loaded = loaded_[launch.kernel];
  if (launch.shared_bytes > loaded.shared_bytes) {
    return CudaError(call, kCudaInvalidValue,
                     absl::StrCat(launch.name, ": ", launch.shared_bytes,
                                  " bytes of shared memory, ",
                                  loaded.shared_bytes, " allowed"));
  }
  if (launch.cluster > loaded.cluster) {
    return CudaError(call, kCudaInvalidClusterSize,
                     absl::StrCat(launch.name, ": clusters of ", launch.cluster,
                                  ", ", loaded.cluster, " allowed"));
  }
  return absl::OkStatus();
}

absl::Status EmulatedCuda::Preload(const Launch& launch) {
  RETURN_IF_ERROR(Begin({.name = "Preload", .detail = launch.name}));
  RETURN_IF_ERROR(CheckLaunch("Preload", launch));
  if (Capturing() && loaded_.count(launch.kernel) == 0) {
    return Fail("Preload", kCudaCaptureUnsupported, launch.name);
  }
  Loaded& loaded = loaded_[launch.kernel];
  loaded.shared_bytes = std::max(loaded.shared_bytes, launch.shared_bytes);
  loaded.cluster = std::max(loaded.cluster, launch.cluster);
  return absl::OkStatus();
}

absl::StatusOr<int> EmulatedCuda::MaxActiveClusters(const Launch& launch) {
  RETURN_IF_ERROR(Begin({.name = "MaxActiveClusters", .detail = launch.name}));
  RETURN_IF_ERROR(CheckLaunch("MaxActiveClusters", launch));
  RETURN_IF_ERROR(CheckLoaded("MaxActiveClusters", launch));
  return options_.max_active_clusters != nullptr
             ? options_.max_active_clusters(launch)
             : options_.device.multiprocessors /
                   static_cast<int>(launch.cluster);
}

EmulatedWork EmulatedCuda::KernelWork(const Launch& launch) {
  EmulatedWork work{.kind = "kernel",
                    .name = launch.name,
                    .waits = launch.waits,
                    .addresses = WordsOf(launch)};
  work.run = [this, launch](uint64_t seed) {
    EmulatorOptions options;
    options.seed = seed;
    options.max_shared_bytes = options_.device.max_shared_bytes;
    return Emulate(launch, options);
  };
  return work;
}

absl::Status EmulatedCuda::LaunchKernel(const Launch& launch, Stream stream) {
  RETURN_IF_ERROR(Begin({.name = "LaunchKernel",
                         .detail = launch.name,
                         .stream = Number(stream)}));
  RETURN_IF_ERROR(CheckLaunch("LaunchKernel", launch));
  RETURN_IF_ERROR(CheckLoaded("LaunchKernel", launch));
  return Enqueue("LaunchKernel", stream, {.work = KernelWork(launch)});
}

// ---- graphs ----------------------------------------------------------------

absl::StatusOr<CudaApi::Graph> EmulatedCuda::CreateGraph() {
  RETURN_IF_ERROR(Begin({"CreateGraph"}));
  const int64_t number = next_handle_++;
  graphs_[number] = std::make_shared<EmulatedGraph>();
  return reinterpret_cast<Graph>(number);
}

void EmulatedCuda::DestroyGraph(Graph graph) {
  BeginDestroy({"DestroyGraph"});
  const auto found = graphs_.find(Number(graph));
  if (found == graphs_.end()) {
    errors_.push_back("DestroyGraph of what is not a graph");
    return;
  }
  graphs_.erase(found);
}

absl::StatusOr<EmulatedGraph*> EmulatedCuda::Find(const char* call,
                                                  Graph graph) const {
  const auto found = graphs_.find(Number(graph));
  if (found != graphs_.end()) return found->second.get();
  return CudaError(call, kCudaInvalidValue, "not a graph");
}

absl::StatusOr<CudaApi::Node> EmulatedCuda::AddNode(
    const char* call, Graph graph, absl::Span<const Edge> edges,
    EmulatedNode node) {
  ASSIGN_OR_RETURN(EmulatedGraph * state, Find(call, graph));
  std::vector<EmulatedNode>& nodes = state->nodes;
  for (const Edge& edge : edges) {
    const auto from = std::find_if(
        nodes.begin(), nodes.end(),
        [&](const EmulatedNode& n) { return n.handle == Number(edge.from); });
    if (from == nodes.end()) {
      return CudaError(call, kCudaInvalidValue, "an edge from another graph");
    }
    const int index = static_cast<int>(from - nodes.begin());
    if (std::any_of(node.edges.begin(), node.edges.end(),
                    [&](const auto& e) { return e.from == index; })) {
      return CudaError(call, kCudaInvalidValue, "two edges from one node");
    }
    if (edge.programmatic &&
        (from->work.kind != "kernel" || !node.work.waits)) {
      return CudaError(
          call, kCudaInvalidValue,
          absl::StrCat("programmatic edge from ", from->work.kind, " ",
                       from->work.name, " to ", node.work.kind, " ",
                       node.work.name, ", which must be a kernel that waits"));
    }
    node.edges.push_back({index, edge.programmatic});
  }
  node.handle = next_handle_++;
  nodes.push_back(std::move(node));
  return reinterpret_cast<Node>(nodes.back().handle);
}

absl::StatusOr<CudaApi::Node> EmulatedCuda::AddKernel(
    Graph graph, absl::Span<const Edge> edges, const Launch& launch) {
  RETURN_IF_ERROR(Begin({.name = "AddKernel", .detail = launch.name}));
  RETURN_IF_ERROR(CheckLaunch("AddKernel", launch));
  RETURN_IF_ERROR(CheckLoaded("AddKernel", launch));
  return AddNode("AddKernel", graph, edges, {.work = KernelWork(launch)});
}

absl::StatusOr<CudaApi::Node> EmulatedCuda::AddChildGraph(
    Graph graph, absl::Span<const Edge> edges, Graph child) {
  RETURN_IF_ERROR(Begin({"AddChildGraph"}));
  ASSIGN_OR_RETURN(EmulatedGraph * state, Find("AddChildGraph", child));
  return AddNode("AddChildGraph", graph, edges,
                 {.work = {.kind = "child graph"}, .inside = state->Clone()});
}

absl::Status EmulatedCuda::BeginCapture(Stream stream) {
  RETURN_IF_ERROR(Begin({.name = "BeginCapture", .stream = Number(stream)}));
  ASSIGN_OR_RETURN(StreamState * state, Find("BeginCapture", stream));
  if (state->capture != nullptr) {
    return CudaError("BeginCapture", kCudaIllegalState, "it captures already");
  }
  state->capture = std::make_shared<EmulatedGraph>();
  state->capture_invalid = false;
  return absl::OkStatus();
}

absl::StatusOr<CudaApi::Graph> EmulatedCuda::EndCapture(Stream stream) {
  const absl::Status begin =
      Begin({.name = "EndCapture", .stream = Number(stream)});
  ASSIGN_OR_RETURN(StreamState * state, Find("EndCapture", stream));
  // Failed or not, it ends.
  const std::shared_ptr<EmulatedGraph> graph = std::move(state->capture);
  state->capture = nullptr;
  RETURN_IF_ERROR(begin);
  if (graph == nullptr) {
    return CudaError("EndCapture", kCudaIllegalState, "it does not capture");
  }
  if (state->capture_invalid) {
    return CudaError("EndCapture", kCudaCaptureInvalidated);
  }
  const int64_t number = next_handle_++;
  graphs_[number] = graph;
  return reinterpret_cast<Graph>(number);
}

absl::StatusOr<std::vector<CudaApi::NodeInfo>> EmulatedCuda::Nodes(
    Graph graph) {
  RETURN_IF_ERROR(Begin({"Nodes"}));
  ASSIGN_OR_RETURN(const EmulatedGraph* state, Find("Nodes", graph));
  std::vector<NodeInfo> nodes;
  for (const EmulatedNode& node : state->nodes) {
    nodes.push_back({node.work.kind, node.work.name});
  }
  return nodes;
}

absl::StatusOr<CudaApi::GraphExec> EmulatedCuda::Instantiate(Graph graph,
                                                             Stream stream) {
  const auto on = streams_.find(Number(stream));
  RETURN_IF_ERROR(Begin({.name = "Instantiate", .stream = Number(stream)},
                        on != streams_.end() && on->second.capture != nullptr));
  RETURN_IF_ERROR(Find("Instantiate", stream).status());
  ASSIGN_OR_RETURN(const EmulatedGraph* state, Find("Instantiate", graph));
  const auto exec = std::make_shared<ExecState>();
  exec->graph = state->Clone();
  const int64_t number = next_handle_++;
  execs_[number] = exec;
  return reinterpret_cast<GraphExec>(number);
}

void EmulatedCuda::DestroyGraphExec(GraphExec exec) {
  BeginDestroy({"DestroyGraphExec"});
  if (Needed(Number(exec))) {
    errors_.push_back("DestroyGraphExec of an exec with queued launches");
  }
  if (execs_.erase(Number(exec)) == 0) {
    errors_.push_back("DestroyGraphExec of what is not an exec");
  }
}

absl::Status EmulatedCuda::LaunchGraph(GraphExec exec, Stream stream) {
  const auto found = execs_.find(Number(exec));
  const bool known = found != execs_.end();
  RETURN_IF_ERROR(Begin(
      {.name = "LaunchGraph",
       .detail = known ? absl::StrCat("of ", found->second->graph->nodes.size(),
                                      " nodes")
                       : "",
       .stream = Number(stream)}));
  if (!known) {
    return CudaError("LaunchGraph", kCudaInvalidValue, "not an exec");
  }
  const std::shared_ptr<ExecState> state = found->second;
  ASSIGN_OR_RETURN(const StreamState* on, Find("LaunchGraph", stream));
  Task task{.work = {.kind = on->capture == nullptr ? "graph" : "child graph"},
            .needs = Number(exec),
            .exec = state};
  // Launches of one exec run one after the other, on different streams too.
  task.ready = [state, before = state->launched] {
    return state->done >= before;
  };
  if (on->capture == nullptr) ++state->launched;
  return Enqueue("LaunchGraph", stream, std::move(task));
}

absl::Status EmulatedCuda::WriteDot(Graph graph, const std::string& path) {
  RETURN_IF_ERROR(Begin({.name = "WriteDot", .detail = path}));
  ASSIGN_OR_RETURN(const EmulatedGraph* state, Find("WriteDot", graph));
  std::ofstream file(path);
  file << state->ToDot() << std::flush;
  if (!file) return CudaError("WriteDot", kCudaInvalidValue, path);
  return absl::OkStatus();
}

}  // namespace onestep
