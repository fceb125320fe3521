// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/train_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/status.h"
#include "trainer/machine_info.h"
#include "trainer/measure/memory_use.h"
#include "trainer/measure/profile.h"
#include "trainer/measure/profile_report.h"
#include "trainer/measure/step_session.h"
#include "trainer/measure/sweep.h"
#include "trainer/model.h"
#include "trainer/report/graph_pictures.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;
using ProgressFn = std::function<void(const std::string&)>;

constexpr int64_t kProfiledSteps = 1000;
// Of the sweep, as far as there are rows for them.
constexpr int64_t kBatches[] = {32, 128, 512, 2048, 4096};

struct Way {
  const char* name;
  CompileOptions compile;
};

std::vector<Way> WaysOf(const Config& config) {
  CompileOptions chain = config.compile;
  chain.dump_dir.clear();
  chain.sparse = {};
  const bool gpu = chain.device == Device::kGpu;
  chain.dispatch = gpu ? Dispatch::kGraph : Dispatch::kOps;
  CompileOptions unfused = chain, fused = chain;
  unfused.fuse = false;
  fused.fuse = true;
  std::vector<Way> ways = {{"unfused", unfused}, {"fused", fused}};
  if (gpu) return ways;
  CompileOptions single = fused;
  single.dispatch = Dispatch::kSingle;
  ways.push_back({"single", single});
  if (config.compile.sparse.nonzeros > 0) {
    single.sparse = config.compile.sparse;
    ways.push_back({"single sparse", single});
  }
  return ways;
}

// The profiles of all ways that can be run; the others go to `refused`.
absl::StatusOr<Json> Profiles(const Config& config, const Dataset& rows,
                              const ProgressFn& progress, Json& refused) {
  Json profiles = Json::array();
  for (const Way& way : WaysOf(config)) {
    progress(absl::StrCat("profile, ", way.name));
    const absl::StatusOr<Profile> profile =
        ProfileStep(config.model, config.optimizer, way.compile, rows,
                    {.name = way.name,
                     .batch = std::min(config.batch, rows.rows),
                     .steps = kProfiledSteps,
                     .trace = nullptr,
                     .trace_steps = 0});
    if (IsRefusal(profile.status())) {
      refused.push_back(absl::StrCat("profile, ", way.name, ": ",
                                     profile.status().message()));
      continue;
    }
    RETURN_IF_ERROR(profile.status());
    profiles.push_back(ToJson(*profile));
  }
  return profiles;
}

absl::StatusOr<Json> SweepOf(const Config& config, const TrainingData& data,
                             const ProgressFn& progress) {
  Config sweep = config;
  sweep.verb = Verb::kSweep;
  sweep.epochs = 1;
  sweep.peers.clear();
  sweep.devices = {config.compile.device};
  sweep.dispatches.clear();
  sweep.input = InputMode::kAuto;
  sweep.compile.sparse = {};
  sweep.batches.clear();
  for (const int64_t batch : kBatches) {
    if (batch <= data.split.train_rows) sweep.batches.push_back(batch);
  }
  if (sweep.batches.empty()) sweep.batches = {data.split.train_rows};
  ASSIGN_OR_RETURN(const Sweep cells, RunSweepCells(sweep, data, progress));
  return ToJson(cells);
}

}  // namespace

absl::StatusOr<Json> TrainReport(const Config& config, const TrainingData& data,
                                 const FinishedRun& run,
                                 const ProgressFn& progress) {
  const int64_t batch = std::min(config.batch, data.split.train_rows);
  Json report;
  report["title"] = absl::StrCat(
      config.model.ToString(), ", ", NameOf(config.model.activation), ", ",
      NameOf(config.model.loss), ", ", NameOf(config.optimizer.kind),
      ", batch ", config.batch);
  report["written"] = absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::Now(),
                                       absl::UTCTimeZone());
  report["command"] =
      absl::StrCat("trainer ", absl::StrJoin(config.arguments, " "));
  report["config"] = ConfigToJson(config);
  report["machine"] = MachineInfo();
  report["epochs"] = run.epochs;
  report["test"] = run.test;

  Json refused = Json::array();
  ASSIGN_OR_RETURN(report["profiles"],
                   Profiles(config, data.train, progress, refused));

  progress("graph");
  ASSIGN_OR_RETURN(
      Graph textbook,
      BuildTrainStep(config.model, config.optimizer, data.train.rows, batch));
  CompileOptions fused = config.compile;
  fused.fuse = true;
  fused.sparse = {};  // as the profile "fused", which is compared op by op
  fused.dump_dir.clear();
  fused.dispatch = Dispatch::kAuto;
  ASSIGN_OR_RETURN(const Compiled compiled, Compile(textbook.Clone(), fused));
  ASSIGN_OR_RETURN(report["graph"],
                   GraphPictures(std::move(textbook), compiled,
                                 config.compile.disabled_passes));

  ASSIGN_OR_RETURN(report["sweep"], SweepOf(config, data, progress));

  progress("memory");
  ASSIGN_OR_RETURN(
      Graph run_graph,
      BuildTrainStep(config.model, config.optimizer, data.train.rows, batch));
  CompileOptions as_run = config.compile;
  as_run.dump_dir.clear();
  ASSIGN_OR_RETURN(Compiled run_step, Compile(std::move(run_graph), as_run));
  ASSIGN_OR_RETURN(
      const MemoryUse memory,
      EstimateMemory(config.model, config.optimizer, run_step, data.train.rows,
                     data.split.train_rows, batch));
  report["memory"] = ToJson(memory);
  report["refused"] = std::move(refused);
  return report;
}

}  // namespace onestep
