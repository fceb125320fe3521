// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/lower/cuda/cuda_hidden_split.h"
#include "compiler/lower/cuda/cuda_ops.h"
#include "compiler/lower/cuda/cuda_report.h"
#include "compiler/lower/lower.h"
#include "kernels/kernels.h"
#include "kernels/probe_launch.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// Nodes of one graph. Beyond some fifty nodes a longer graph hides no more
// launch cost, and it takes longer to build.
constexpr int64_t kNodesPerGraph = 96;
constexpr int64_t kMaxStepsPerGraph = 64;
// The largest share of a graph's time that its launch may cost, where the probe
// has measured both.
constexpr double kLaunchShare = 0.02;
// The largest batch that the tiers fused and persistent were designed for: past
// it every block reads too much of x.
constexpr int64_t kMaxHiddenSplitBatch = 512;

// The device that a plan is for where there is none.
CudaDevice PlannedDevice() {
  CudaDevice device;
  device.name = "a planned sm_90 device";
  device.multiprocessors = 132;
  device.compute_major = 9;
  device.memory_bytes = int64_t{80} << 30;
  device.max_shared_bytes = 232448;
  return device;
}

class CudaLowering {
 public:
  CudaLowering(Graph& graph, const CudaRequest& request,
               const CudaOptions& options, CudaReport& report)
      : graph_(graph), request_(request), options_(options), report_(report) {}

  absl::StatusOr<std::unique_ptr<CudaProgram>> Run() {
    RETURN_IF_ERROR(CheckRequest());
    ASSIGN_OR_RETURN(CudaApi* const cuda, options_.Api());
    absl::StatusOr<std::unique_ptr<CudaSession>> session =
        CudaSession::Create(*cuda);
    if (session.ok()) {
      session_ = *std::move(session);
      device_ = session_->device;
    } else {
      if (!options_.plan_only) return session.status();
      no_device_ = session.status();
      device_ = PlannedDevice();
    }
    ASSIGN_OR_RETURN(CudaSpec spec, LowerTiers());
    spec.fill = [](float* to, float value, int64_t n) {
      return cuda::Fill(to, value, n);
    };
    spec.empty = cuda::ProbeEmpty(/*waits=*/false);
    spec.lowering = Describe(spec);
    report_.device = device_.ToString();
    DescribeNodes(spec);
    std::unique_ptr<CudaProgram> program;
    if (session_ == nullptr) {
      absl::StrAppend(&spec.lowering,
                      "; planned, not run: ", no_device_.message());
      program = CudaProgram::Planned(std::move(spec), no_device_);
    } else {
      ASSIGN_OR_RETURN(program,
                       CudaProgram::Create(std::move(session_), std::move(spec),
                                           options_.table_limit_bytes));
    }
    report_.program = program.get();
    return program;
  }

 private:
  absl::Status CheckRequest() const {
    const CudaTier tier = options_.tier;
    if (tier == CudaTier::kAuto || request_.way == CudaWay::kAuto) {
      return absl::OkStatus();
    }
    const bool one_kernel = tier == CudaTier::kPersistent;
    if (one_kernel == (request_.way == CudaWay::kSingle)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("tier ", ToString(tier), ": want dispatch ",
                     one_kernel ? "single" : "ops or graph"));
  }

  // The tiers that the request allows, best first.
  std::vector<CudaTier> Tiers() const {
    if (options_.tier != CudaTier::kAuto) return {options_.tier};
    switch (request_.way) {
      case CudaWay::kSingle:
        return {CudaTier::kPersistent};
      case CudaWay::kGraph:
        return request_.fuse ? std::vector{CudaTier::kFused, CudaTier::kLibrary}
                             : std::vector{CudaTier::kLibrary};
      case CudaWay::kOps:
        return {CudaTier::kLibrary};
      case CudaWay::kAuto:
        break;
    }
    if (!request_.fuse) return {CudaTier::kLibrary};
    return {CudaTier::kPersistent, CudaTier::kFused, CudaTier::kLibrary};
  }

  absl::StatusOr<CudaSpec> LowerTiers() {
    for (const CudaTier tier : Tiers()) {
      absl::StatusOr<CudaSpec> spec =
          tier == CudaTier::kLibrary ? LowerOps() : LowerFused(tier);
      if (spec.ok() || !absl::IsUnimplemented(spec.status())) {
        report_.tier = tier;
        return spec;
      }
      report_.notes.push_back(std::string(spec.status().message()));
    }
    return absl::UnimplementedError(absl::StrCat(
        "device gpu: ", absl::StrJoin(report_.notes, "; "),
        request_.way == CudaWay::kSingle ? "; --dispatch graph can run the step"
                                         : ""));
  }

  // ---- tiers fused and persistent -------------------------------------------

  absl::StatusOr<CudaSpec> LowerFused(CudaTier tier) {
    const auto refuse = [&](absl::string_view why) {
      return absl::UnimplementedError(
          absl::StrCat("tier ", ToString(tier), ": ", why));
    };
    absl::StatusOr<HiddenSplitMatch> match = MatchHiddenSplit(graph_);
    if (!match.ok()) return refuse(match.status().message());
    if (options_.math == MathMode::kTf32) return refuse("no math tf32");
    if (options_.math == MathMode::kBf16) {
      match->shape.first_layer = CudaFirstLayer::kBf16;
    } else if (options_.first_layer == CudaFirstLayer::kSplit) {
      match->shape.first_layer = CudaFirstLayer::kSplit;
    }
    if (options_.tier == CudaTier::kAuto &&
        match->shape.batch > kMaxHiddenSplitBatch) {
      return refuse(absl::StrCat("batch ", match->shape.batch,
                                 ", auto uses the tier up to ",
                                 kMaxHiddenSplitBatch));
    }
    ASSIGN_OR_RETURN(const cuda::HiddenSplitPlan plan, Plan(tier, *match));
    if (!plan.refusal.empty()) return refuse(plan.refusal);
    const bool each = request_.way == CudaWay::kOps;
    constexpr int64_t kNodesPerStep =
        3;  // of tier fused: forward, loss, backward
    return LowerHiddenSplit(*match, plan, each, StepsPerLaunch(kNodesPerStep));
  }

  // Plans for clusters of up to 16 blocks, or 8 where the device cannot place
  // more.
  absl::StatusOr<cuda::HiddenSplitPlan> Plan(CudaTier tier,
                                             const HiddenSplitMatch& match) {
    cuda::DeviceLimits limits;
    limits.shared_bytes = device_.max_shared_bytes;
    if (device_.compute_major < 9) limits.max_cluster = 1;
    cuda::HiddenSplitPlan plan = PlanHiddenSplit(tier, match.shape, limits);
    if (tier != CudaTier::kPersistent || session_ == nullptr) return plan;
    for (const int smaller : {8, 1}) {
      if (!plan.refusal.empty()) return plan;
      if (plan.blocks <= smaller) continue;
      const Launch launch = cuda::HiddenSplitPersistent(
          plan, cuda::HiddenSplitBuffers{}, 0, 1, cuda::PersistentSignals{});
      RETURN_IF_ERROR(session_->cuda.Preload(launch));
      ASSIGN_OR_RETURN(const int clusters,
                       session_->cuda.MaxActiveClusters(launch));
      if (clusters > 0) return plan;
      report_.notes.push_back(
          absl::StrCat("tier persistent: the device cannot place a cluster of ",
                       plan.blocks));
      limits.max_cluster = smaller;
      plan = PlanHiddenSplit(tier, match.shape, limits);
    }
    return plan;
  }

  // ---- tier library, and every graph without fusion -------------------------

  absl::StatusOr<CudaSpec> LowerOps() {
    CudaMatMulChoice matmuls;
    matmuls.math = options_.math;
    matmuls.library = request_.library;
    matmuls.gradients = request_.fuse;
    matmuls.plan =
        [this](
            const CudaMatMul& matmul) -> absl::StatusOr<CudaApi::MatMulPlan> {
      if (session_ == nullptr) return nullptr;
      return session_->matmuls.Plan(matmul);
    };
    matmuls.describe = [this](CudaApi::MatMulPlan plan) -> std::string {
      return session_ == nullptr ? "" : session_->cuda.Describe(plan);
    };
    if (!request_.library && options_.math != MathMode::kFp32) {
      return absl::UnimplementedError(absl::StrCat(
          "math ", ToString(options_.math), " with kernels loops"));
    }
    if (matmuls.library && session_ != nullptr) {
      ASSIGN_OR_RETURN(library_, session_->cuda.MatMulLibrary());
    }
    ASSIGN_OR_RETURN(CudaOps ops, LowerCudaOps(graph_, matmuls));
    report_.notes.insert(report_.notes.end(), ops.notes.begin(),
                         ops.notes.end());
    library_matmuls_ = ops.library;
    CudaSpec spec;
    spec.slots = std::move(ops.slots);
    spec.tables = std::move(ops.tables);
    spec.arena_bytes = ops.arena_bytes;
    spec.workspace_bytes = ops.workspace_bytes;
    spec.constants = std::move(ops.constants);
    spec.plan = std::move(ops.plan);
    for (const CudaOp& op : ops.ops) spec.steps.push_back(op.info);
    spec.launch =
        request_.way == CudaWay::kOps ? CudaLaunch::kEach : CudaLaunch::kGraph;
    spec.steps_per_launch =
        StepsPerLaunch(static_cast<int64_t>(ops.ops.size()) + 1);
    spec.nodes = [ops = std::move(ops.ops)](const CudaBindings& at, int64_t n) {
      std::vector<CudaNode> nodes;
      const std::vector<CudaNode> boundary = BoundaryNodes(at, false);
      for (int64_t s = 0; s < n; ++s) {
        for (const CudaOp& op : ops) nodes.push_back(op.node(at));
        nodes.insert(nodes.end(), boundary.begin(), boundary.end());
      }
      return nodes;
    };
    spec.begin = [](const CudaBindings& at) { return BoundaryNodes(at, true); };
    return spec;
  }

  int64_t StepsPerLaunch(int64_t nodes) const {
    if (options_.steps_per_launch > 0) return options_.steps_per_launch;
    int64_t steps = kNodesPerGraph / nodes;
    if (options_.node_us > 0 && options_.graph_launch_us > 0) {
      const double step_us = options_.node_us * static_cast<double>(nodes);
      steps = static_cast<int64_t>(
          std::ceil(options_.graph_launch_us / (kLaunchShare * step_us)));
    }
    return std::clamp<int64_t>(steps, 1, kMaxStepsPerGraph);
  }

  // Describes the nodes of a training run, in which all is bound, by a planned
  // program: nothing is bound yet.
  void DescribeNodes(const CudaSpec& spec) {
    const std::vector<CudaNode> nodes =
        CudaProgram::Planned(spec, absl::OkStatus())->Nodes();
    report_.nodes = CudaNodesText(nodes);
    report_.nodes_dot = CudaNodesDot(nodes);
    report_.occupancy =
        OccupancyOf(nodes, spec.launch != CudaLaunch::kEach, device_);
  }

  std::string Describe(const CudaSpec& spec) const {
    const int64_t ops = std::ssize(spec.steps);
    std::string text = absl::StrCat("cuda ", ToString(report_.tier), ", math ",
                                    ToString(options_.math), ": ");
    switch (spec.launch) {
      case CudaLaunch::kEach:
        absl::StrAppend(&text, ops, " ops, a launch each");
        break;
      case CudaLaunch::kGraph:
        absl::StrAppend(&text, ops, ops == 1 ? " kernel" : " ops",
                        " a step, one graph replay per ", spec.steps_per_launch,
                        spec.steps_per_launch == 1 ? " step" : " steps");
        break;
      case CudaLaunch::kPersistent:
        absl::StrAppend(&text, "one persistent kernel for many steps");
        break;
    }
    if (report_.tier != CudaTier::kLibrary) {
      absl::StrAppend(&text, ", first layer ",
                      options_.math == MathMode::kBf16 ? "bf16"
                      : options_.first_layer == CudaFirstLayer::kSplit
                          ? "split into 3 bf16"
                          : "fp32");
    } else if (request_.library) {
      absl::StrAppend(&text, "; ", library_matmuls_, " matmuls by ",
                      library_.empty() ? "cublasLt" : library_);
    }
    if (const int64_t models = ModelsOf(graph_); models > 0) {
      absl::StrAppend(
          &text, "; ", models, " models",
          report_.tier == CudaTier::kPersistent ? ", a cluster each" : "");
    }
    return absl::StrCat(text, "; ", device_.ToString());
  }

  Graph& graph_;
  const CudaRequest& request_;
  const CudaOptions& options_;
  std::unique_ptr<CudaSession> session_;  // null: only planned
  absl::Status no_device_;
  CudaDevice device_;
  std::string library_;
  int library_matmuls_ = 0;
  CudaReport& report_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaProgram>> LowerToCuda(
    Graph& graph, const CudaRequest& request, const CudaOptions& options,
    CudaReport& report) {
  return CudaLowering(graph, request, options, report).Run();
}

}  // namespace onestep
