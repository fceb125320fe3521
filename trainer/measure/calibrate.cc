// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/calibrate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/clock.h"
#include "runtime/base/huge_pages.h"
#include "runtime/base/status.h"
#include "runtime/cpu/core_latency.h"
#include "runtime/cpu/dispatch_cost.h"
#include "trainer/autotune.h"
#include "trainer/cache.h"
#include "trainer/data/nonzeros.h"
#include "trainer/data/random_rows.h"
#include "trainer/interrupt.h"
#include "trainer/machine_info.h"
#include "trainer/measure/bandwidth.h"
#include "trainer/measure/peak.h"
#include "trainer/measure/rows_to_time.h"
#include "trainer/measure/step_session.h"
#include "trainer/measure/timing.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// Counts up when calls are told apart in another way (CallOf), or other steps
// are run.
constexpr int kCalls = 1;
// Every step comes up so often, seconds apart: what disturbs one round may
// spare the other. Models of more parameters, whose weights take longer to draw
// than their step to run, come up once.
constexpr int kRounds = 2;
constexpr int64_t kParametersOfAllRounds = 1 << 20;
// How long a step is timed and then traced in a round, in slices of which the
// fastest counts; a long step at least so often.
constexpr double kTimedUs = 3e3;
constexpr double kSliceUs = 1e3;
constexpr int kLeastRuns = 2;
constexpr int kMostTraces = 3;  // of a way in a round, until one is undisturbed
// Of a call: the clock's reads are not exact.
constexpr double kLeastUs = 1e-3;
// Longer steps teach nothing new of nonzeros.
constexpr double kSparseFlops = 2e9;
// A primitive's fixed cost is learned from the first step at least this large.
constexpr double kOnednnFlops = 2e3;
constexpr int64_t kCopies[] = {16 << 10, 512 << 10, 8 << 20, 64 << 20};
constexpr int kFewPeakSamples = 10;

double MicrosSince(int64_t start_ns) {
  return static_cast<double>(NowNs() - start_ns) * 1e-3;
}

// ---- what is run -----------------------------------------------------------

// The rows of a calibration step, cut from `all`.
Dataset RowsOf(const Dataset& all, const CalibrationStep& step) {
  Dataset data;
  data.rows = kTimedRows;
  data.features = step.widths.front();
  data.image_rows = 1;
  data.image_cols = data.features;
  data.classes = static_cast<int>(step.widths.back());
  data.source = all.source;
  data.images.reserve(data.rows * data.features);
  PreferHugePages(data.images.data(), data.rows * data.features);
  data.images.assign(all.images.begin(),
                     all.images.begin() + data.rows * data.features);
  data.labels = all.labels;
  for (int32_t& label : data.labels) label %= data.classes;
  return data;
}

std::vector<CompileOptions> WaysOf(const Config& config, const Dataset& data,
                                   double flops) {
  std::vector<CompileOptions> ways;
  const auto add = [&](Dispatch dispatch, Kernels kernels, int threads,
                       bool sparse) {
    CompileOptions way;
    way.affinity = config.compile.affinity;
    way.dispatch = dispatch;
    way.kernels = kernels;
    way.threads = threads;
    if (sparse) way.sparse = {CountNonzeros(data)};
    ways.push_back(way);
  };
  for (const int threads : ThreadCounts(config)) {
    add(Dispatch::kOps, Kernels::kLoops, threads, false);
    if (flops > kOnednnFlops) {
      add(Dispatch::kOps, Kernels::kOnednn, threads, false);
    }
    add(Dispatch::kSingle, Kernels::kAuto, threads, false);
    if (flops > kSparseFlops) continue;
    add(Dispatch::kOps, Kernels::kLoops, threads, true);
    add(Dispatch::kSingle, Kernels::kAuto, threads, true);
  }
  return ways;
}

// ---- what is learned -------------------------------------------------------

// Mean of the faster half: what interrupts a call must not pass for its work,
// and a clock that ticks every 10 ns is finer in the mean.
double FasterHalf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = (values.size() + 1) / 2;
  return std::accumulate(values.begin(), values.begin() + half, 0.0) /
         static_cast<double>(half);
}

// Times of worker 0's calls, [calls][steps] in us.
struct CallTimes {
  std::vector<std::vector<double>> us, forks_us;
};

void Append(const StepTrace& trace, CallTimes& times) {
  const StepTrace::Worker& worker = trace.workers[0];
  times.us.resize(worker.calls);
  times.forks_us.resize(worker.calls);
  int64_t fork = 0;
  for (int64_t step = 0; step < trace.steps; ++step) {
    for (int64_t call = 0; call < worker.calls; ++call) {
      const int64_t end = worker.at(step, call + 1);
      times.us[call].push_back(
          static_cast<double>(end - worker.at(step, call)) * 1e-3);
      double forks_ns = 0;
      for (; fork < worker.forks_recorded && worker.forks[fork].end <= end;
           ++fork) {
        const ForkStamps& f = worker.forks[fork];
        forks_ns +=
            static_cast<double>(f.body_begin - f.begin + f.end - f.body_end);
      }
      times.forks_us[call].push_back(std::max(0.0, forks_ns * 1e-3));
    }
  }
}

// Adds the calls of the session's step, whose times are made to add up to that
// of the untraced step. False: something else had a core, however often it
// ran; then nothing is added, unless `always`.
absl::StatusOr<bool> Learn(StepSession& session, int threads,
                           double table_bytes, double clock_us,
                           const CoreWaitsFn& waits, bool always,
                           CallCosts& costs) {
  StepTimer timer(StepsOf(session), waits);
  RETURN_IF_ERROR(TakeSamples(timer, kSliceUs, kTimedUs, kLeastRuns));
  const double step_us = timer.us();
  const auto steps = static_cast<int64_t>(
      std::max<double>(kLeastRuns, std::ceil(kTimedUs / step_us)));
  std::vector<StepTrace> traces;
  bool disturbed = true;
  for (int i = 0; i < kMostTraces && disturbed; ++i) {
    if (PendingSignal() != 0) return absl::CancelledError("stopped");
    const Disturbance disturbance(waits);
    traces.clear();
    RETURN_IF_ERROR(session.RunTraced(steps, traces));
    disturbed = disturbance.Seen();
  }
  const bool undisturbed = timer.undisturbed() && !disturbed;
  if (!undisturbed && !always) return false;
  CallTimes times;
  for (const StepTrace& trace : traces) Append(trace, times);
  const std::vector<StepInfo>& infos = session.executable().steps();
  std::vector<double> us;
  for (const std::vector<double>& of_call : times.us) {
    const double traced = FasterHalf(of_call);
    us.push_back(std::max({traced - clock_us, 0.2 * traced, kLeastUs}));
  }
  const double scale = step_us / std::accumulate(us.begin(), us.end(), 0.0);
  const StepContext context =
      ContextOf(session.compiled(), threads, table_bytes);
  double since_wait_us = 0;
  for (size_t i = 0; i < infos.size(); ++i) {
    const double call_us = us[i] * scale;
    if (infos[i].kind == StepKind::kWait) {
      costs.Add(WaitAfter(since_wait_us, context.workers), call_us);
      since_wait_us = 0;
      continue;
    }
    costs.Add(CallOf(infos[i], context), call_us,
              std::min(FasterHalf(times.forks_us[i]), 0.5 * call_us));
    since_wait_us += call_us;
  }
  return undisturbed;
}

// Runs the step in every way and learns from each; `undisturbed` says from
// which it did without anything else having had a core, now or before. In the
// last round it learns from the others nevertheless.
absl::Status LearnFrom(const Config& config, const ModelSpec& model,
                       int64_t batch, const Dataset& data, double clock_us,
                       const CoreWaitsFn& waits, bool last_round,
                       std::vector<bool>& undisturbed, CallCosts& costs) {
  const auto table_bytes = static_cast<double>(std::ssize(data.images));
  const std::vector<CompileOptions> ways =
      WaysOf(config, data, TextbookFlops(model, batch));
  undisturbed.resize(ways.size());
  for (size_t i = 0; i < ways.size(); ++i) {
    const auto session =
        StepSession::Create(model, config.optimizer, ways[i], data, batch);
    // More workers than a step can be shared out to.
    if (absl::IsUnimplemented(session.status())) {
      undisturbed[i] = true;
      continue;
    }
    RETURN_IF_ERROR(session.status());
    ASSIGN_OR_RETURN(
        const bool learned,
        Learn(**session, ways[i].threads, table_bytes, clock_us, waits,
              /*always=*/last_round && !undisturbed[i], costs));
    undisturbed[i] = undisturbed[i] || learned;
  }
  return absl::OkStatus();
}

// ---- what is kept ----------------------------------------------------------

std::string KeyOf(const Config& config) {
  Json json;
  json["machine"] = BuildAndCpu();
  json["calls"] = kCalls;
  json["threads"] = ThreadCounts(config);
  json["affinity"] = ToString(config.compile.affinity);
  json["activation"] = NameOf(config.model.activation);
  json["loss"] = NameOf(config.model.loss);
  json["optimizer"] = NameOf(config.optimizer.kind);
  return json.dump();
}

}  // namespace

const std::vector<CalibrationStep>& CalibrationSteps() {
  static const std::vector<CalibrationStep> steps = {
      {{10, 12, 3}, 1},
      {{6, 20, 5}, 2},
      {{12, 24, 6}, 4},
      {{48, 32, 12}, 8},
      {{96, 48, 10}, 16},
      {{500, 64, 5}, 1},
      {{600, 96, 12}, 32},
      {{200, 96, 24}, 64},
      {{400, 200, 100, 20}, 128},
      {{700, 320, 320, 12}, 256},
      {{600, 160, 12}, 2048},
      {{700, 1024, 1024, 12}, 32},
      {{900, 1000, 1000, 14}, 512}};
  return steps;
}

double CoreNsNow(const Config& config) {
  if (config.compile.threads == 1) return 0;
  const absl::StatusOr<CoreLatency> latency =
      MeasureCoreLatency(config.compile.threads, config.compile.affinity);
  return latency.ok() ? latency->ns : 0;
}

absl::StatusOr<MachineCosts> Calibrate(
    const Config& config,
    const std::function<void(const std::string&)>& progress,
    const CoreWaitsFn& waits, const std::vector<CalibrationStep>& steps) {
  const int64_t start = NowNs();
  ASSIGN_OR_RETURN(const DispatchCost dispatch, MeasureDispatchCost());
  const double clock_us = dispatch.clock_ns * 1e-3;
  MachineCosts costs;
  PeakProbe peak(1);
  for (int i = 0; i < kFewPeakSamples; ++i) peak.Sample();
  for (const int64_t bytes : kCopies) {
    costs.copies.push_back(
        {static_cast<double>(bytes), CopyBandwidth(1, bytes)});
  }
  const auto widest =
      std::max_element(steps.begin(), steps.end(),
                       [](const CalibrationStep& a, const CalibrationStep& b) {
                         return a.widths.front() < b.widths.front();
                       });
  const Dataset all =
      RandomRows(kTimedRows, widest->widths.front(), 1 << 20, 1);
  std::vector<std::vector<bool>> undisturbed(steps.size());
  for (int round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const CalibrationStep& step = steps[i];
      ModelSpec model = config.model;
      model.widths = step.widths;
      const bool once = model.num_parameters() > kParametersOfAllRounds;
      if (round > 1 && once) continue;
      progress(absl::StrCat("calibrate, round ", round, " of ", kRounds, ": ",
                            model.ToString(), ", batch ", step.batch));
      RETURN_IF_ERROR(LearnFrom(config, model, step.batch, RowsOf(all, step),
                                clock_us, waits, once || round == kRounds,
                                undisturbed[i], costs.calls));
      peak.Sample();
      costs.cores.Add(CoreNsNow(config));
    }
  }
  for (const std::vector<bool>& ways : undisturbed) {
    costs.busy |= std::count(ways.begin(), ways.end(), false) > 0;
  }
  costs.peak_gflops = peak.best_gflops();
  costs.seconds = MicrosSince(start) * 1e-6;
  return costs;
}

absl::StatusOr<MachineCosts> KeptCosts(
    const Config& config,
    const std::function<void(const std::string&)>& progress,
    const CoreWaitsFn& waits, const std::vector<CalibrationStep>& steps) {
  Cache cache(kCostsFile, "what calls cost here");
  const std::string key = KeyOf(config);
  if (std::optional<MachineCosts> kept = MachineCostsOf(cache.Get(key))) {
    return *std::move(kept);
  }
  ASSIGN_OR_RETURN(MachineCosts costs,
                   Calibrate(config, progress, waits, steps));
  if (!costs.busy) cache.Put(key, ToJson(costs));
  return costs;
}

}  // namespace onestep
