// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/advise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "trainer/autotune.h"
#include "trainer/cache.h"
#include "trainer/data/random_rows.h"
#include "trainer/data/split.h"
#include "trainer/interrupt.h"
#include "trainer/launch_costs.h"
#include "trainer/machine_info.h"
#include "trainer/measure/calibrate.h"
#include "trainer/measure/gpu_cost.h"
#include "trainer/measure/step_session.h"
#include "trainer/measure/timing.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;
using Notify = std::function<void(const std::string&)>;

constexpr int64_t kAdvisedBatches[] = {8,   16,  32,   64,   128,
                                       256, 512, 1024, 2048, 4096};
// A check's table of rows is no larger: what a fetch costs does not change any
// more.
constexpr int64_t kCheckedBytes = int64_t{256} << 20;
// Each way is checked for so long, in slices of which the fastest counts.
constexpr double kCheckUs = 2e5;
constexpr double kCheckSliceUs = 2e3;
constexpr int kCheckSlices = 5;
// A way that takes at most so much of the time of another is as good.
constexpr double kAsGood = 1.03;
// A step this short is not shared out: on two cores of Zen 5 a barrier takes
// 0.1 to 0.5 us, by where the cores lie, and that changes by the second.
constexpr double kTooShortUs = 1;

class Adviser {
 public:
  Adviser(const Config& config, const Notify& progress,
          const CoreWaitsFn& waits)
      : config_(config), progress_(progress), waits_(waits) {}

  absl::StatusOr<Advice> Run(bool batch_given);

 private:
  // The ways at a batch, the fastest first; those refused go to the advice.
  absl::StatusOr<std::vector<AdvisedWay>> WaysAt(int64_t batch);
  absl::StatusOr<std::vector<AdvisedWay>> GpuWaysAt(int64_t batch);
  // False: refused.
  absl::StatusOr<bool> Estimate(AdvisedWay& way);
  CompileOptions OptionsOf(const AdvisedWay& way) const;
  absl::StatusOr<Compiled> CompileWay(const AdvisedWay& way) const;
  absl::Status CheckWays();
  absl::StatusOr<double> Measure(const AdvisedWay& way, const Dataset& data);
  int64_t TrainRows() const;
  void FindGpu();

  const Config& config_;
  const Notify& progress_;
  const CoreWaitsFn& waits_;
  std::optional<KeptProbe> probe_;  // of the GPU
  Advice advice_;
};

// The fastest first; but fewer threads that are as good as the fastest before
// all.
void SortByTime(std::vector<AdvisedWay>& ways) {
  std::stable_sort(ways.begin(), ways.end(),
                   [](const AdvisedWay& a, const AdvisedWay& b) {
                     return a.cost.us < b.cost.us;
                   });
  auto best = ways.begin();
  for (auto way = ways.begin(); way != ways.end(); ++way) {
    const bool as_good =
        way->cost.us <= std::max(kTooShortUs, kAsGood * ways.front().cost.us);
    if (as_good && way->threads < best->threads) best = way;
  }
  if (!ways.empty()) std::rotate(ways.begin(), best, best + 1);
}

// The train rows of a run with the default split.
int64_t Adviser::TrainRows() const {
  const absl::StatusOr<Split> split =
      SplitRows(config_.rows, config_.validation);
  return split.ok() ? split->train_rows : config_.rows;
}

CompileOptions Adviser::OptionsOf(const AdvisedWay& way) const {
  CompileOptions options = config_.compile;
  options.device = way.device;
  options.cuda.plan_only = probe_ && !probe_->here;
  options.dispatch = way.dispatch;
  options.threads = way.threads;
  if (way.input == InputMode::kSparse) {
    const double pixels = static_cast<double>(config_.rows) *
                          static_cast<double>(config_.model.features());
    options.sparse = {
        std::max<int64_t>(1, std::llround(config_.density * pixels))};
  }
  return options;
}

absl::StatusOr<Compiled> Adviser::CompileWay(const AdvisedWay& way) const {
  ASSIGN_OR_RETURN(Graph graph, BuildTrainStep(config_.model, config_.optimizer,
                                               config_.rows, way.batch));
  return Compile(std::move(graph), OptionsOf(way));
}

absl::StatusOr<bool> Adviser::Estimate(AdvisedWay& way) {
  if (PendingSignal() != 0) return absl::CancelledError("stopped");
  progress_(absl::StrCat("estimate ", way.Flags()));
  const absl::StatusOr<Compiled> compiled = CompileWay(way);
  absl::Status status = compiled.status();
  if (status.ok() && way.device == Device::kGpu) {
    const auto cost = EstimateGpuStep(*probe_, *compiled, way.batch);
    status = cost.status();
    if (status.ok()) way.cost = *cost;
  } else if (status.ok()) {
    way.cost = EstimateStep(advice_.costs, *compiled, way.threads,
                            static_cast<double>(config_.rows) *
                                static_cast<double>(config_.model.features()));
  }
  if (IsRefusal(status)) {
    advice_.refused.push_back(
        absl::StrCat(way.Flags(), ": ", std::string(status.message())));
    return false;
  }
  RETURN_IF_ERROR(status);
  way.epoch_seconds = way.cost.us * 1e-6 * static_cast<double>(TrainRows()) /
                      static_cast<double>(way.batch);
  return true;
}

absl::StatusOr<std::vector<AdvisedWay>> Adviser::WaysAt(int64_t batch) {
  std::vector<AdvisedWay> ways;
  for (const Dispatch dispatch : {Dispatch::kOps, Dispatch::kSingle}) {
    for (const InputMode input : {InputMode::kDense, InputMode::kSparse}) {
      if (input == InputMode::kSparse && config_.density >= kSparseDensity) {
        continue;
      }
      for (const int threads : ThreadCounts(config_)) {
        AdvisedWay way;
        way.dispatch = dispatch;
        way.threads = threads;
        way.input = input;
        way.batch = batch;
        ASSIGN_OR_RETURN(const bool estimated, Estimate(way));
        if (estimated) ways.push_back(way);
      }
    }
  }
  if (probe_ && probe_->here) {
    ASSIGN_OR_RETURN(const std::vector<AdvisedWay> gpu, GpuWaysAt(batch));
    ways.insert(ways.end(), gpu.begin(), gpu.end());
  }
  if (ways.empty()) return absl::UnimplementedError(advice_.refused[0]);
  SortByTime(ways);
  return ways;
}

absl::StatusOr<std::vector<AdvisedWay>> Adviser::GpuWaysAt(int64_t batch) {
  std::vector<AdvisedWay> ways;
  for (const Dispatch dispatch : {Dispatch::kGraph, Dispatch::kSingle}) {
    AdvisedWay way;
    way.device = Device::kGpu;
    way.dispatch = dispatch;
    way.batch = batch;
    ASSIGN_OR_RETURN(const bool estimated, Estimate(way));
    if (estimated) ways.push_back(way);
  }
  SortByTime(ways);
  return ways;
}

absl::StatusOr<double> Adviser::Measure(const AdvisedWay& way,
                                        const Dataset& data) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StepSession> session,
                   StepSession::Create(config_.model, config_.optimizer,
                                       OptionsOf(way), data, way.batch));
  StepTimer timer(StepsOf(*session), waits_);
  RETURN_IF_ERROR(TakeSamples(timer, kCheckSliceUs, kCheckUs, kCheckSlices));
  advice_.check_busy |= !timer.undisturbed();
  return timer.us();
}

absl::Status Adviser::CheckWays() {
  const int64_t batch = advice_.ways[0].batch;
  const int64_t rows = std::max(
      batch, std::min(config_.rows, kCheckedBytes / config_.model.features()));
  const Dataset data =
      RandomRows(rows, config_.model.features(), config_.model.classes(),
                 /*seed=*/1, config_.density);
  for (AdvisedWay& way : advice_.ways) {
    if (PendingSignal() != 0) return absl::CancelledError("stopped");
    progress_(absl::StrCat("check ", way.Flags()));
    ASSIGN_OR_RETURN(way.measured_us, Measure(way, data));
  }
  return absl::OkStatus();
}

void Adviser::FindGpu() {
  const auto devices = GpuNames();
  const auto probe = FindKeptProbe(config_.compile.cuda);
  if (!devices.ok()) advice_.gpu = std::string(devices.status().message());
  if (probe.ok()) {
    probe_ = *probe;
  } else if (devices.ok()) {
    advice_.gpu = std::string(probe.status().message());
  }
}

absl::StatusOr<Advice> Adviser::Run(bool batch_given) {
  if (batch_given && config_.batch > config_.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch: want at most ", config_.rows, ", the rows, got ",
                     config_.batch));
  }
  FindGpu();
  ASSIGN_OR_RETURN(advice_.costs, KeptCosts(config_, progress_, waits_));
  advice_.core_ns = CoreNsNow(config_);
  std::vector<int64_t> batches = {config_.batch};
  if (!batch_given) {
    batches.assign(std::begin(kAdvisedBatches), std::end(kAdvisedBatches));
    std::erase_if(batches, [&](int64_t b) { return b > TrainRows(); });
    if (batches.empty()) batches = {TrainRows()};
  }
  std::vector<std::vector<AdvisedWay>> ways;
  double shortest = std::numeric_limits<double>::infinity();
  for (const int64_t batch : batches) {
    ASSIGN_OR_RETURN(std::vector<AdvisedWay> at_batch, WaysAt(batch));
    shortest = std::min(shortest, at_batch[0].epoch_seconds);
    advice_.batches.push_back(at_batch[0]);
    ways.push_back(std::move(at_batch));
  }
  const auto advised = std::find_if(
      ways.begin(), ways.end(), [&](const std::vector<AdvisedWay>& at_batch) {
        return at_batch[0].epoch_seconds <= (1 + kBatchTolerance) * shortest;
      });
  advice_.ways = *advised;
  ASSIGN_OR_RETURN(Compiled compiled, CompileWay(advice_.ways[0]));
  ASSIGN_OR_RETURN(
      advice_.memory,
      EstimateMemory(config_.model, config_.optimizer, compiled, config_.rows,
                     TrainRows(), advice_.ways[0].batch));
  if (probe_ && !probe_->here) {
    ASSIGN_OR_RETURN(advice_.elsewhere, GpuWaysAt(advice_.ways[0].batch));
  }
  if (config_.check) RETURN_IF_ERROR(CheckWays());
  return std::move(advice_);
}

// ---- for people and scripts ------------------------------------------------

Json ToJson(const AdvisedWay& way) {
  Json json = {{"flags", way.Flags()},
               {"device", NameOf(way.device)},
               {"dispatch", NameOf(way.dispatch)},
               {"threads", way.threads},
               {"input", NameOf(way.input)},
               {"batch", way.batch},
               {"us_per_step", way.cost.us},
               {"compute_us", way.cost.compute_us},
               {"memory_us", way.cost.memory_us},
               {"launch_us", way.cost.launch_us},
               {"transfer_us", way.cost.transfer_us},
               {"seconds_per_epoch", way.epoch_seconds},
               {"not_calibrated", way.cost.unknown},
               {"measured_us", nullptr},
               {"error", nullptr}};
  if (way.measured_us) {
    json["measured_us"] = *way.measured_us;
    json["error"] = way.Error();
  }
  return json;
}

Json ToJson(const std::vector<AdvisedWay>& ways) {
  Json json = Json::array();
  for (const AdvisedWay& way : ways) json.push_back(ToJson(way));
  return json;
}

// The flags of the model and of what else is not the default.
std::string ModelFlags(const Config& config) {
  std::string flags = absl::StrCat("--model ", config.model.ToString());
  const Config defaults;
  if (config.model.activation != defaults.model.activation) {
    absl::StrAppend(&flags, " --activation ", NameOf(config.model.activation));
  }
  if (config.model.loss != defaults.model.loss) {
    absl::StrAppend(&flags, " --loss ", NameOf(config.model.loss));
  }
  const OptimizerSpec& optimizer = config.optimizer;
  if (optimizer.kind != defaults.optimizer.kind) {
    absl::StrAppend(&flags, " --optimizer ", NameOf(optimizer.kind));
  }
  if (optimizer.momentum != defaults.optimizer.momentum) {
    absl::StrAppend(&flags, " --momentum ", optimizer.momentum);
  }
  if (optimizer.nesterov) absl::StrAppend(&flags, " --nesterov");
  if (optimizer.weight_decay != defaults.optimizer.weight_decay) {
    absl::StrAppend(&flags, " --weight-decay ", optimizer.weight_decay);
  }
  if (config.compile.affinity.kind != Affinity::kNone) {
    absl::StrAppend(&flags, " --affinity ", ToString(config.compile.affinity));
  }
  if (!config.compile.disabled_passes.empty()) {
    absl::StrAppend(&flags, " --disable-pass ",
                    absl::StrJoin(config.compile.disabled_passes, ","));
  }
  if (config.compile.kernels != defaults.compile.kernels) {
    absl::StrAppend(&flags, " --kernels ", NameOf(config.compile.kernels));
  }
  return flags;
}

// Whether what was measured bears out what is advised.
std::string CheckText(const std::vector<AdvisedWay>& ways) {
  const auto fastest = std::min_element(
      ways.begin(), ways.end(), [](const AdvisedWay& a, const AdvisedWay& b) {
        return *a.measured_us < *b.measured_us;
      });
  if (*ways[0].measured_us <= kAsGood * *fastest->measured_us) return "";
  return absl::StrFormat(
      "  measured, %s is faster: %.2f us; if the machine is idle, take that\n",
      fastest->Flags(), *fastest->measured_us);
}

std::string LineOf(const AdvisedWay& way) {
  const bool gpu = way.device == Device::kGpu;
  std::string line = absl::StrFormat(
      "  %-4s %-8s %7s  %-6s %10.2f %10.2f %10.2f %10.2f %10.2f",
      NameOf(way.device), NameOf(way.dispatch),
      gpu ? "-" : absl::StrCat(way.threads), gpu ? "-" : NameOf(way.input),
      way.cost.us, way.cost.compute_us, way.cost.memory_us, way.cost.launch_us,
      way.cost.transfer_us);
  if (way.measured_us) {
    absl::StrAppendFormat(&line, " %10.2f %+6.0f %%", *way.measured_us,
                          100 * way.Error());
  }
  return line + "\n";
}

}  // namespace

std::string AdvisedWay::Flags() const {
  if (device == Device::kGpu) {
    return absl::StrCat("--batch ", batch, " --device gpu --dispatch ",
                        NameOf(dispatch));
  }
  return absl::StrCat("--batch ", batch, " --dispatch ", NameOf(dispatch),
                      " --threads ", threads, " --input ", NameOf(input));
}

absl::StatusOr<Advice> Advise(const Config& config, bool batch_given,
                              const Notify& progress,
                              const CoreWaitsFn& waits) {
  return Adviser(config, progress, waits).Run(batch_given);
}

Json ToJson(const Config& config, const Advice& advice) {
  const AdvisedWay& best = advice.ways[0];
  Json json;
  json["model"] = config.model.ToString();
  json["optimizer"] = NameOf(config.optimizer.kind);
  json["rows"] = config.rows;
  json["density"] = config.density;
  json["advised"] = ToJson(best);
  json["check_busy"] = advice.check_busy;
  json["ways"] = ToJson(advice.ways);
  json["batches"] = ToJson(advice.batches);
  json["refused"] = advice.refused;
  json["gpu"] = advice.gpu;
  json["elsewhere"] = ToJson(advice.elsewhere);
  json["memory"] = ToJson(advice.memory);
  json["core_ns"] = advice.core_ns;
  json["calibration"] = {
      {"file", CacheFile(kCostsFile)},
      {"core_ns", {advice.costs.cores.least_ns, advice.costs.cores.most_ns}},
      {"busy", advice.costs.busy},
      {"seconds", advice.costs.seconds},
      {"calls", advice.costs.calls.points()},
      {"peak_gflops", advice.costs.peak_gflops}};
  return json;
}

std::string ToText(const Config& config, const Advice& advice) {
  const AdvisedWay& best = advice.ways[0];
  std::string text = absl::StrFormat(
      "advise: %s, %s, %s, %s, %d rows of which %.0f %% of the values are not "
      "zero\n\n  trainer %s %s\n\nexpected: %.2f us a step, %.3f s an "
      "epoch\n\n",
      config.model.ToString(), NameOf(config.model.activation),
      NameOf(config.model.loss), NameOf(config.optimizer.kind), config.rows,
      100 * config.density, ModelFlags(config), best.Flags(), best.cost.us,
      best.epoch_seconds);
  absl::StrAppendFormat(
      &text, "  %-4s %-8s %7s  %-6s %10s %10s %10s %10s %10s%s\n", "",
      "dispatch", "threads", "input", "us a step", "compute", "memory",
      "launches", "transfers", best.measured_us ? "   measured   error" : "");
  for (const AdvisedWay& way : advice.ways) {
    absl::StrAppend(&text, LineOf(way));
  }
  if (best.measured_us) absl::StrAppend(&text, CheckText(advice.ways));
  if (advice.check_busy) {
    absl::StrAppend(&text, "  measured while the machine was busy\n");
  }
  for (const std::string& refused : advice.refused) {
    absl::StrAppend(&text, "  ", refused, "\n");
  }
  if (!advice.gpu.empty()) absl::StrAppend(&text, "  ", advice.gpu, "\n");
  if (!advice.elsewhere.empty()) {
    absl::StrAppend(&text, "  on the GPU that was probed, roughly:\n");
    for (const AdvisedWay& way : advice.elsewhere) {
      absl::StrAppend(&text, LineOf(way));
    }
  }
  if (advice.batches.size() > 1) {
    absl::StrAppend(&text, "\n   batch  s an epoch, the fastest way\n");
    for (const AdvisedWay& way : advice.batches) {
      absl::StrAppendFormat(&text, "%8d  %10.4f  %s\n", way.batch,
                            way.epoch_seconds, way.Flags());
    }
    absl::StrAppendFormat(
        &text,
        "advised is the smallest batch within %.0f %% of the shortest epoch; "
        "a larger one takes fewer steps,\nwhich may cost accuracy: trainer "
        "sweep "
        "shows it\n",
        100 * kBatchTolerance);
  }
  absl::StrAppend(&text, "\nmemory of a run:\n", ToText(advice.memory));
  const std::string file = CacheFile(kCostsFile);
  absl::StrAppendFormat(
      &text, "\ntold from %d calls of other models, timed here in %.1f s%s\n",
      advice.costs.calls.points(), advice.costs.seconds,
      advice.costs.busy ? " and not kept, as the machine was busy"
      : file.empty()    ? ""
                        : absl::StrCat(" and kept in ", file,
                                       ": without it they are timed anew"));
  const std::string change = advice.costs.cores.ChangeText(advice.core_ns);
  if (!change.empty()) absl::StrAppend(&text, "note: ", change, "\n");
  for (const std::string& kernel : best.cost.unknown) {
    absl::StrAppend(&text, "not calibrated: ", kernel, "\n");
  }
  return text;
}

}  // namespace onestep
