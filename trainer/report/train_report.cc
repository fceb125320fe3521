// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/train_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/status.h"
#include "trainer/machine_info.h"
#include "trainer/measure/memory_use.h"
#include "trainer/measure/profile_report.h"
#include "trainer/measure/sweep.h"
#include "trainer/model.h"
#include "trainer/report/graph_pictures.h"
#include "trainer/search/trial_config.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;
using ProgressFn = std::function<void(const std::string&)>;

constexpr int64_t kProfiledSteps = 1000;
constexpr double kProfileSeconds = 20;
// Of the sweep, as far as there are rows for them.
constexpr int64_t kBatches[] = {32, 128, 512, 2048, 4096};

// A call per op, all of a step.
Dispatch ChainOf(Device device) {
  return device == Device::kGpu ? Dispatch::kGraph : Dispatch::kOps;
}

// "single sparse"; a chain is "fused" or "unfused".
std::string WayName(const CompileOptions& way) {
  const Dispatch chain = ChainOf(way.device);
  std::string name =
      way.dispatch == chain
          ? way.fuse ? "fused" : "unfused"
          : absl::StrCat(NameOf(way.dispatch), way.fuse ? "" : " unfused");
  if (way.sparse.nonzeros > 0) name += " sparse";
  return name;
}

// The profiles of all ways that can be run, the others in "refused", and how
// the fused step compares with the unfused one.
absl::Status AddProfiles(const Config& config, const Dataset& rows,
                         Json& report) {
  const std::vector<ProfiledWay> ways = ReportedWays(config);
  std::vector<std::string> refused;
  ProfileOptions options;
  options.batch = std::min(config.batch, rows.rows);
  options.steps = kProfiledSteps;
  options.most_seconds = kProfileSeconds;
  options.refused = &refused;
  ASSIGN_OR_RETURN(
      const std::vector<Profile> profiles,
      ProfileSteps(config.model, config.optimizer, ways, rows, options));
  report["profiles"] = Json::array();
  const Profile *unfused = nullptr, *fused = nullptr;
  for (const Profile& profile : profiles) {
    report["profiles"].push_back(ToJson(profile));
    report["profiles"].back()["of_run"] = profile.name == ways[0].name;
    if (profile.name == "unfused") unfused = &profile;
    if (profile.name == "fused") fused = &profile;
  }
  report["unfused_over_fused"] = nullptr;
  if (unfused != nullptr && fused != nullptr) {
    report["unfused_over_fused"] = RatioToJson(*unfused, *fused);
  }
  report["refused"] = refused;
  return absl::OkStatus();
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
  if (cells.interrupted) return absl::CancelledError("stopped");
  return ToJson(cells);
}

}  // namespace

std::vector<ProfiledWay> ReportedWays(const Config& config) {
  std::vector<ProfiledWay> ways;
  const auto add = [&](CompileOptions way) {
    way.dump_dir.clear();
    std::string name = WayName(way);
    if (std::any_of(ways.begin(), ways.end(),
                    [&](const ProfiledWay& had) { return had.name == name; })) {
      return;
    }
    ways.push_back({std::move(name), std::move(way)});
  };
  CompileOptions way = config.compile;
  add(way);
  way.sparse = {};
  way.dispatch = ChainOf(way.device);
  for (const bool fuse : {false, true}) {
    way.fuse = fuse;
    add(way);
  }
  if (way.device == Device::kGpu) return ways;
  way.dispatch = Dispatch::kSingle;
  add(way);
  if (config.compile.sparse.nonzeros > 0) {
    way.sparse = config.compile.sparse;
    add(way);
  }
  return ways;
}

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
  report["command"] = GivenCommandLine(config);
  report["config"] = ConfigToJson(config);
  report["machine"] = MachineInfo();
  report["epochs"] = run.epochs;
  report["test"] = run.test;
  report["ended"] = run.ended;

  progress("profile");
  RETURN_IF_ERROR(AddProfiles(config, data.train, report));

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
  return report;
}

}  // namespace onestep
