// SPDX-License-Identifier: Apache-2.0
#include "compiler/compiler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/lower/lower.h"
#include "runtime/base/clock.h"
#include "runtime/base/nvtx.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

KernelChoice ChoiceOf(const CompileOptions& options) {
  switch (options.kernels) {
    case Kernels::kOnednn:
      return KernelChoice::kOnednn;
    case Kernels::kLoops:
      return KernelChoice::kLoops;
    case Kernels::kAuto:
      break;
  }
  return options.fuse ? KernelChoice::kBySize : KernelChoice::kOnednn;
}

// A sparse input was asked for: that it came to be one.
absl::Status CheckSparse(const Graph& graph, const CompileOptions& options,
                         const std::vector<PassRecord>& passes) {
  if (options.sparse.nonzeros == 0) return absl::OkStatus();
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::kGatherSparse) return absl::OkStatus();
  }
  std::string why = "pass sparse-input did not run";
  for (const PassRecord& pass : passes) {
    if (pass.name != "sparse-input" || !pass.ran) continue;
    why =
        pass.refusals.empty() ? "the graph gathers no bytes" : pass.refusals[0];
  }
  return absl::UnimplementedError(absl::StrCat("input sparse: ", why));
}

absl::Status CheckVectorized(const Graph& graph,
                             const CompileOptions& options) {
  if (options.vectorize.models == 0 || ModelsOf(graph) > 0) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError("many models: pass vectorize did not run");
}

absl::Status LowerSingle(const Graph& graph, const CompileOptions& options,
                         Compiled& compiled) {
  if (options.kernels == Kernels::kOnednn) {
    return absl::UnimplementedError(
        "dispatch single with kernels onednn: want kernels auto or loops");
  }
  TeamOptions team;
  team.workers = options.threads;
  team.affinity = options.affinity;
  team.micro_gemm = options.kernels == Kernels::kAuto;
  ASSIGN_OR_RETURN(LoweredTeam lowered, LowerToTeam(graph, team));
  compiled.executable = std::move(lowered.executable);
  compiled.dispatch = Dispatch::kSingle;
  compiled.team.emplace(TeamReport{std::move(lowered.partition),
                                   std::move(lowered.worker),
                                   lowered.exchanges});
  return absl::OkStatus();
}

absl::Status LowerGpu(Graph& graph, const CompileOptions& options,
                      Compiled& compiled) {
  if (options.kernels == Kernels::kOnednn) {
    return absl::UnimplementedError(
        "device gpu with kernels onednn: want kernels auto or loops");
  }
  if (options.sparse.nonzeros > 0) {
    return absl::UnimplementedError(
        "device gpu with input sparse: want input auto or dense");
  }
  CudaRequest request;
  request.fuse = options.fuse;
  request.library = options.kernels == Kernels::kAuto;
  switch (options.dispatch) {
    case Dispatch::kAuto:
      request.way = CudaWay::kAuto;
      break;
    case Dispatch::kOps:
      request.way = CudaWay::kOps;
      break;
    case Dispatch::kGraph:
      request.way = CudaWay::kGraph;
      break;
    case Dispatch::kSingle:
      request.way = CudaWay::kSingle;
      break;
  }
  ASSIGN_OR_RETURN(
      compiled.executable,
      LowerToCuda(graph, request, options.cuda, compiled.cuda.emplace()));
  compiled.dispatch = options.dispatch;
  if (compiled.dispatch == Dispatch::kAuto) {
    compiled.dispatch = compiled.cuda->tier == CudaTier::kPersistent
                            ? Dispatch::kSingle
                            : Dispatch::kGraph;
  }
  return absl::OkStatus();
}

absl::Status Lower(Graph& graph, const CompileOptions& options,
                   Compiled& compiled) {
  const ScopedRange range("lower");
  if (options.device == Device::kGpu) {
    return LowerGpu(graph, options, compiled);
  }
  switch (options.dispatch) {
    case Dispatch::kAuto:
    case Dispatch::kOps: {
      ASSIGN_OR_RETURN(compiled.executable,
                       LowerToChain(graph, ChoiceOf(options), options.threads));
      return absl::OkStatus();
    }
    case Dispatch::kSingle:
      return LowerSingle(graph, options, compiled);
    case Dispatch::kGraph:
      break;
  }
  return absl::UnimplementedError(
      absl::StrCat("dispatch ", ToString(options.dispatch), " on device ",
                   ToString(options.device), ": want ops, single or auto"));
}

}  // namespace

const char* ToString(Device device) {
  return device == Device::kGpu ? "gpu" : "cpu";
}

const char* ToString(Dispatch dispatch) {
  switch (dispatch) {
    case Dispatch::kAuto:
      return "auto";
    case Dispatch::kOps:
      return "ops";
    case Dispatch::kGraph:
      return "graph";
    case Dispatch::kSingle:
      return "single";
  }
  return "?";
}

const char* ToString(Kernels kernels) {
  switch (kernels) {
    case Kernels::kAuto:
      return "auto";
    case Kernels::kOnednn:
      return "onednn";
    case Kernels::kLoops:
      return "loops";
  }
  return "?";
}

std::string TeamLibrary() {
  const char* const library = TeamMatMulLibrary();
  return library == nullptr ? "none" : library;
}

absl::StatusOr<Compiled> Compile(Graph graph, const CompileOptions& options) {
  const ScopedRange range("compile");
  Compiled compiled;
  compiled.begin_ns = NowNs();
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: want at least 1, got ", options.threads));
  }
  if (const absl::Status status = graph.Verify(); !status.ok()) {
    return absl::InvalidArgumentError(status.message());
  }
  PipelineOptions pipeline;
  pipeline.fuse = options.fuse;
  pipeline.disabled = options.disabled_passes;
  pipeline.keep_text = options.keep_text;
  pipeline.dump_dir = options.dump_dir;
  pipeline.sparse = options.sparse;
  pipeline.vectorize = options.vectorize;
  ASSIGN_OR_RETURN(compiled.passes, RunPipeline(graph, pipeline));
  RETURN_IF_ERROR(CheckSparse(graph, options, compiled.passes));
  RETURN_IF_ERROR(CheckVectorized(graph, options));
  compiled.lower_ns = NowNs();
  RETURN_IF_ERROR(Lower(graph, options, compiled));
  compiled.graph = std::move(graph);
  compiled.end_ns = NowNs();
  compiled.ms = 1e-6 * static_cast<double>(compiled.end_ns - compiled.begin_ns);
  return compiled;
}

}  // namespace onestep
