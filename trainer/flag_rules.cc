// SPDX-License-Identifier: Apache-2.0
#include "trainer/flag_rules.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/numbers.h"
#include "trainer/output_dir.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;

absl::Status CheckGpu(const Config& config, const FlagSet& flags) {
  const std::vector<Device>& devices = config.devices;
  if (config.compile.device == Device::kGpu ||
      std::find(devices.begin(), devices.end(), Device::kGpu) !=
          devices.end()) {
    const CudaOptions& cuda = config.compile.cuda;
    if (cuda.tier != CudaTier::kLibrary ||
        cuda.first_layer == CudaFirstLayer::kAuto) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "--first-layer: want --tier fused or persistent with it, got library");
  }
  for (const char* flag :
       {"--math", "--tier", "--first-layer", "--steps-per-launch",
        "--device-data", "--dump-cuda-graph"}) {
    if (flags.Given(flag)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": want --device gpu with it, got cpu"));
    }
  }
  return absl::OkStatus();
}

// Where `path` leads, links followed, whether or not something is there.
fs::path Canonical(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::weakly_canonical(fs::absolute(path, error), error);
  return full.has_filename() ? full : full.parent_path();
}

// What one flag has written must not be lost to another.
absl::Status CheckOutputs(const Config& config) {
  using Output = std::pair<const char*, std::string>;
  const fs::path out = config.out.empty() ? "" : Canonical(config.out);
  std::vector<std::pair<const char*, fs::path>> taken = {{"--out", out}};
  if (!config.compile.dump_dir.empty()) {
    taken.push_back({"--dump-ir", Canonical(config.compile.dump_dir)});
  }
  for (const auto& [flag, name] :
       {Output("--dump-cuda-graph", config.cuda_graph),
        Output("--cache", config.word2vec.cache),
        Output("--trace", config.trace), Output("--report", config.report)}) {
    if (name.empty()) continue;
    const fs::path path = Canonical(name);
    const bool of_run =
        path.parent_path() == out && IsOfARun(path.filename().string());
    for (const auto& [other, where] : taken) {
      if (path != where && !(of_run && where == out)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": want a file that ", other,
                       " does not write, got ", Quote(name)));
    }
    taken.push_back({flag, path});
  }
  return absl::OkStatus();
}

// Whether the flags leave a way with workers, whom --affinity places.
bool HasWorkers(const Config& config) {
  const std::vector<Dispatch>& columns = config.dispatches;
  const Dispatch dispatch = config.compile.dispatch;
  switch (config.verb) {
    case Verb::kTrain:
      return dispatch == Dispatch::kSingle || dispatch == Dispatch::kAuto;
    case Verb::kGraph:
    case Verb::kProfile:  // which take auto for ops
      return dispatch == Dispatch::kSingle;
    case Verb::kSweep:
      return columns.empty() || std::find(columns.begin(), columns.end(),
                                          Dispatch::kSingle) != columns.end();
    default:
      return true;
  }
}

}  // namespace

absl::Status CheckTogether(const Config& config, const FlagSet& flags) {
  RETURN_IF_ERROR(CheckGpu(config, flags));
  RETURN_IF_ERROR(CheckOutputs(config));
  for (const char* flag : {"--momentum", "--nesterov"}) {
    if (config.verb != Verb::kSearch && flags.Given(flag) &&
        config.optimizer.kind != OptimizerKind::kMomentum) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": want --optimizer momentum with it, got ",
                       NameOf(config.optimizer.kind)));
    }
  }
  if (config.compile.affinity.kind != Affinity::kNone && !HasWorkers(config)) {
    return absl::InvalidArgumentError(
        "--affinity: want --dispatch single with it");
  }
  if (config.patience > 0 && config.validation == 0) {
    return absl::InvalidArgumentError(
        "--patience: want --validation above 0 with it, got 0");
  }
  if (config.verb == Verb::kProfile) {
    if (config.compare_fusion && config.input == InputMode::kSparse) {
      return absl::InvalidArgumentError(
          "--compare: want --input dense with it, got sparse, which is fused");
    }
    if (flags.Given("--fuse") && config.compare_fusion) {
      return absl::InvalidArgumentError(
          "--compare: want no --fuse with it, as it shows both");
    }
  }
  if (flags.Given("--gate") && config.compare_file.empty()) {
    return absl::InvalidArgumentError("--gate: want --compare FILE with it");
  }
  if (flags.Given("--trace-steps") && config.trace.empty()) {
    return absl::InvalidArgumentError("--trace-steps: want --trace FILE");
  }
  if (config.force && config.out.empty()) {
    return absl::InvalidArgumentError("--force: want --out DIR with it");
  }
  return absl::OkStatus();
}

}  // namespace onestep
