// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/pipeline.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "runtime/base/clock.h"
#include "runtime/base/nearest.h"
#include "runtime/base/nvtx.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

constexpr Pass kPasses[] = {
    // First, so that all other passes see the graph that runs.
    {"vectorize", VectorizeModels, false},
    {"simplify", Simplify, false},
    // After simplify, which makes more nodes equal to each other.
    {"cse", Cse, false},
    // After simplify and cse, which leave dead nodes; before the fusions, which
    // count uses. The fusions erase the nodes that they replace.
    {"dce", Dce, false},
    // Before the fusions, because it follows the gradient through unfused ops.
    {"fold-learning-rate", FoldLearningRate, true},
    // After fold-learning-rate, which turns updates into additions.
    {"sparse-update", SparseUpdate, true},
    // After sparse-update, whose scatter_adds it matches.
    {"fuse-sparse-window", FuseSparseWindow, true},
    // After fold-learning-rate, whose factor it fuses.
    {"fuse-loss-grad", FuseLossGrad, true},
    // After fuse-loss-grad, which leaves one reader of the gathered labels.
    {"fuse-gather", FuseGather, true},
    {"fuse-bias-activation", FuseBiasActivation, true},
    // After fuse-loss-grad, because it fuses bias gradients into loss_grad too.
    {"fuse-activation-grad", FuseActivationGrad, true},
    // The in-place updates come last, so that no later pass moves a reader of
    // an
    // old value; after fuse-activation-grad, which makes the ops that the bias
    // update is fused into.
    {"fuse-bias-update", FuseBiasUpdate, true},
    // After fuse-bias-update, because this pass may move nodes down.
    {"fuse-update", FuseUpdate, true},
    // After the fusions, because the sparse products keep the fused epilogues.
    // It is not marked as a fusion, so that it runs with fusion off and reports
    // why it does nothing.
    {"sparse-input", SparsifyInput, false},
};

absl::Status CheckNames(const std::vector<std::string>& disabled,
                        const std::vector<Pass>& passes) {
  std::vector<std::string> known;
  for (const Pass& pass : passes) known.push_back(pass.name);
  for (const std::string& name : disabled) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("want names of passes, got '", name, "'; the nearest is ",
                     NearestOf(name, known)));
  }
  return absl::OkStatus();
}

absl::Status Dump(const Graph& graph, const PassRecord& record, int number,
                  const std::string& dir) {
  const std::string path =
      absl::StrFormat("%s/%02d-%s.txt", dir, number, record.name);
  std::ofstream file(path);
  for (const std::string& refusal : record.refusals) {
    file << "# " << refusal << "\n";
  }
  file << PrintGraph(graph, {.fused_from = true});
  file.close();
  if (!file) {
    return absl::FailedPreconditionError(
        absl::StrCat("dump: cannot write ", path));
  }
  return absl::OkStatus();
}

// Runs one pass and verifies the graph.
absl::Status RunPass(Graph& graph, const Pass& pass,
                     const PipelineOptions& options, PassRecord& record) {
  const bool need_text = options.keep_text || options.check_reports;
  std::string before = need_text ? PrintGraph(graph) : "";
  PassContext context{graph, {}, options.sparse, options.vectorize};
  const ScopedRange range(pass.name);
  record.begin_ns = NowNs();
  ASSIGN_OR_RETURN(record.changed, pass.run(context));
  record.ms = 1e-6 * static_cast<double>(NowNs() - record.begin_ns);
  record.ran = true;
  record.nodes_after = graph.size();
  record.refusals = std::move(context.refusals);
  RETURN_IF_ERROR(graph.Verify());
  std::string after = need_text ? PrintGraph(graph) : "";
  if (options.check_reports && record.changed != (before != after)) {
    return absl::InternalError(record.changed
                                   ? "reports a change, but there is none"
                                   : "reports no change, but there is one");
  }
  if (options.keep_text) {
    record.before = std::move(before);
    record.after = std::move(after);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPassNames(const std::vector<std::string>& names) {
  return CheckNames(names, AllPasses());
}

const std::vector<Pass>& AllPasses() {
  static const auto* const passes =
      new std::vector<Pass>(std::begin(kPasses), std::end(kPasses));
  return *passes;
}

absl::StatusOr<std::vector<PassRecord>> RunPipeline(
    Graph& graph, const PipelineOptions& options) {
  return RunPipeline(graph, options, AllPasses());
}

absl::StatusOr<std::vector<PassRecord>> RunPipeline(
    Graph& graph, const PipelineOptions& options,
    const std::vector<Pass>& passes) {
  RETURN_IF_ERROR(CheckNames(options.disabled, passes));
  for (int i = 0; i < graph.size(); ++i) graph.nodes()[i]->origins = {i};
  std::vector<PassRecord> records;
  for (const Pass& pass : passes) {
    PassRecord& record = records.emplace_back();
    record.name = pass.name;
    record.nodes_before = record.nodes_after = graph.size();
    const bool disabled =
        std::find(options.disabled.begin(), options.disabled.end(),
                  pass.name) != options.disabled.end();
    if (disabled || (pass.fusion && !options.fuse)) continue;
    const absl::Status status = RunPass(graph, pass, options, record);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("after pass ", pass.name,
                                                      ": ", status.message()));
    }
    if (!options.dump_dir.empty() &&
        (record.changed || !record.refusals.empty())) {
      RETURN_IF_ERROR(Dump(graph, record, static_cast<int>(records.size()),
                           options.dump_dir));
    }
  }
  return records;
}

}  // namespace onestep
