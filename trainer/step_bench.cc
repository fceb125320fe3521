// SPDX-License-Identifier: Apache-2.0
#include "trainer/step_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/status.h"
#include "trainer/data/nonzeros.h"
#include "trainer/data/random.h"
#include "trainer/data/random_rows.h"
#include "trainer/peak.h"
#include "trainer/step_session.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

// A training run's share of 60,000 rows.
constexpr int64_t kRows = 48000;
constexpr int64_t kTableBytes = int64_t{64} << 20;

// A team takes its weights in and gives them back in each: 40 us.
constexpr double kSampleSeconds = 10e-3;
// Warm is who was not faster by this much in so many slices; or after so many
// slices in all, on a machine that never comes to rest.
constexpr double kWarmGain = 0.01;
constexpr int kWarmSlices = 8;
constexpr int kMaxWarmSlices = 200;

// Losses below this are as good as 0: what their share is says nothing.
constexpr double kLossFloor = 1e-6;

// A sample during which the kernel took a core away says little about the
// step: it is taken again. On a machine that is never quiet that must end:
// after so many tries, and so long for a batch in all, the fastest counts.
constexpr int kMaxTries = 50;
constexpr double kMaxRetakeSeconds = 10;

// Of the peak before the first sample, besides one between any two.
constexpr int kPeakSamples = 30;

// Steps that are waited for one by one, on a GPU.
constexpr int kSyncedSteps = 200;

// The way that the others are compared with.
constexpr char kFused[] = "fused";

struct WayOptions {
  const char* name;
  CompileOptions compile;
};

// The first is how the textbook has it.
std::vector<WayOptions> WaysOf(const Config& config, const Dataset& data) {
  CompileOptions unfused = config.compile;
  unfused.dump_dir.clear();
  CompileOptions fused = unfused;
  if (fused.dispatch != Dispatch::kGraph) fused.dispatch = Dispatch::kOps;
  unfused.dispatch = Dispatch::kOps;
  unfused.fuse = false;
  unfused.kernels = Kernels::kOnednn;
  CompileOptions loops = unfused;
  loops.kernels = Kernels::kLoops;
  CompileOptions single = fused;
  single.dispatch = Dispatch::kSingle;
  CompileOptions sparse = single;
  sparse.sparse = {CountNonzeros(data)};
  return {{"unfused", unfused},
          {"loops", loops},
          {kFused, fused},
          {"single", single},
          {"single_sparse", sparse}};
}

// Every tier, or T0 and the one asked for, and every way to launch it; "fused"
// is T0 as one graph.
std::vector<WayOptions> GpuWaysOf(const Config& config) {
  CompileOptions base = config.compile;
  base.dump_dir.clear();
  const auto way = [&base](Dispatch dispatch, bool fuse, CudaTier tier,
                           CudaFirstLayer first_layer) {
    CompileOptions options = base;
    options.dispatch = dispatch;
    options.fuse = fuse;
    options.cuda.tier = tier;
    options.cuda.first_layer = first_layer;
    return options;
  };
  constexpr auto kFma = CudaFirstLayer::kFma;
  constexpr auto kSplit = CudaFirstLayer::kSplit;
  std::vector<WayOptions> ways = {
      {"unfused_ops", way(Dispatch::kOps, false, CudaTier::kT0, kFma)},
      {"unfused", way(Dispatch::kGraph, false, CudaTier::kT0, kFma)},
      {"t0_ops", way(Dispatch::kOps, true, CudaTier::kT0, kFma)},
      {kFused, way(Dispatch::kGraph, true, CudaTier::kT0, kFma)},
      {"t1_ops", way(Dispatch::kOps, true, CudaTier::kT1, kFma)},
      {"t1", way(Dispatch::kGraph, true, CudaTier::kT1, kFma)},
      {"t2", way(Dispatch::kSingle, true, CudaTier::kT2, kFma)},
      {"t3", way(Dispatch::kSingle, true, CudaTier::kT3, kFma)}};
  if (base.cuda.math == MathMode::kFp32) {
    ways.insert(
        ways.end(),
        {{"t1_split", way(Dispatch::kGraph, true, CudaTier::kT1, kSplit)},
         {"t2_split", way(Dispatch::kSingle, true, CudaTier::kT2, kSplit)},
         {"t3_split", way(Dispatch::kSingle, true, CudaTier::kT3, kSplit)}});
  }
  const CudaTier only = base.cuda.tier;
  if (only != CudaTier::kAuto) {
    std::erase_if(ways, [&](const WayOptions& made) {
      const CudaTier tier = made.compile.cuda.tier;
      return tier != CudaTier::kT0 && tier != only;
    });
  }
  return ways;
}

// High enough that a wrong gradient shows in the losses of the check.
float CheckRate(OptimizerKind optimizer) {
  switch (optimizer) {
    case OptimizerKind::kSgd:
      return 0.1f;
    case OptimizerKind::kMomentum:
      return 0.01f;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return 0.001f;
  }
  return 0;
}

// How often a thread of this process lost its core while it had work.
int64_t InvoluntarySwitches() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

class StepBench {
 public:
  // Ways that cannot be run go to `refused`.
  absl::Status Create(const Config& config, const Dataset& data, int64_t batch,
                      std::vector<std::string>& refused);
  // The largest relative difference of two losses.
  absl::StatusOr<double> CheckLosses(OptimizerKind optimizer, double tolerance);
  absl::Status WarmUp();
  absl::Status Sample(Random& random);
  // The host waits for each step.
  absl::Status TimeSynced();
  std::vector<WayResult> Results(double flops) const;
  int64_t interrupted() const { return interrupted_; }

 private:
  struct Way {
    std::string name;
    std::unique_ptr<StepSession> session;
    int64_t steps = 1;  // of a sample
    std::vector<double> us;
    double synced_us = 0;
  };

  // Microseconds per step.
  static absl::StatusOr<double> Time(Way& way);
  absl::StatusOr<double> TimeUndisturbed(Way& way);

  std::vector<Way> ways_;
  int64_t interrupted_ = 0;
  double retake_seconds_ = 0;
};

absl::Status StepBench::Create(const Config& config, const Dataset& data,
                               int64_t batch,
                               std::vector<std::string>& refused) {
  const bool gpu = config.compile.device == Device::kGpu;
  for (const WayOptions& way : gpu ? GpuWaysOf(config) : WaysOf(config, data)) {
    absl::StatusOr<std::unique_ptr<StepSession>> session = StepSession::Create(
        config.model, config.optimizer, way.compile, data, batch);
    const bool needed = gpu ? way.compile.cuda.tier == CudaTier::kT0
                            : way.compile.dispatch != Dispatch::kSingle;
    if (absl::IsUnimplemented(session.status()) && !needed) {
      refused.push_back(
          absl::StrCat(way.name, ": ", session.status().message()));
      continue;
    }
    RETURN_IF_ERROR(session.status());
    ways_.push_back({way.name, *std::move(session), 1, {}});
  }
  return absl::OkStatus();
}

absl::StatusOr<double> StepBench::CheckLosses(OptimizerKind optimizer,
                                              double tolerance) {
  for (Way& way : ways_) {
    RETURN_IF_ERROR(way.session->Reset(CheckRate(optimizer)));
  }
  double largest = 0;
  for (int step = 1; step <= kCheckedSteps; ++step) {
    for (Way& way : ways_) RETURN_IF_ERROR(way.session->Run(1));
    const double want = ways_[0].session->loss();
    for (const Way& way : ways_) {
      const double got = way.session->loss();
      const double difference =
          std::abs(got - want) / std::max(std::abs(want), kLossFloor);
      largest = std::max(largest, difference);
      // Written so that nan is refused.
      if (difference <= tolerance) continue;
      return absl::InternalError(
          absl::StrCat("bench: step ", step, ": want the ", ways_[0].name,
                       " loss ", want, " within a share of ", tolerance,
                       ", got the ", way.name, " loss ", got));
    }
  }
  return largest;
}

absl::StatusOr<double> StepBench::Time(Way& way) {
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(way.session->Run(way.steps));
  const std::chrono::duration<double, std::micro> us = Clock::now() - start;
  return us.count() / static_cast<double>(way.steps);
}

absl::Status StepBench::WarmUp() {
  for (Way& way : ways_) {
    RETURN_IF_ERROR(way.session->Reset(kTimingRate));
    way.steps = 1;
    ASSIGN_OR_RETURN(double best_us, Time(way));
    int slices_without_gain = 0;
    for (int slice = 0;
         slice < kMaxWarmSlices && slices_without_gain < kWarmSlices; ++slice) {
      way.steps =
          static_cast<int64_t>(std::ceil(kSampleSeconds * 1e6 / best_us));
      ASSIGN_OR_RETURN(const double us, Time(way));
      const bool gain = us < best_us * (1 - kWarmGain);
      slices_without_gain = gain ? 0 : slices_without_gain + 1;
      best_us = std::min(best_us, us);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> StepBench::TimeUndisturbed(Way& way) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const int64_t switches = InvoluntarySwitches();
    ASSIGN_OR_RETURN(const double us, Time(way));
    fastest = std::min(fastest, us);
    if (InvoluntarySwitches() == switches) return us;
    ++interrupted_;
    retake_seconds_ += us * static_cast<double>(way.steps) * 1e-6;
    if (retake_seconds_ > kMaxRetakeSeconds) break;
  }
  return fastest;
}

absl::Status StepBench::Sample(Random& random) {
  for (const int32_t i : random.Permutation(std::ssize(ways_))) {
    ASSIGN_OR_RETURN(const double us, TimeUndisturbed(ways_[i]));
    ways_[i].us.push_back(us);
  }
  return absl::OkStatus();
}

absl::Status StepBench::TimeSynced() {
  for (Way& way : ways_) {
    std::vector<double> us;
    for (int i = 0; i < kSyncedSteps; ++i) {
      const Clock::time_point start = Clock::now();
      RETURN_IF_ERROR(way.session->Run(1));
      us.push_back(
          std::chrono::duration<double, std::micro>(Clock::now() - start)
              .count());
    }
    way.synced_us = Median(us);
  }
  return absl::OkStatus();
}

std::vector<WayResult> StepBench::Results(double flops) const {
  const auto fused =
      std::find_if(ways_.begin(), ways_.end(),
                   [](const Way& way) { return way.name == kFused; });
  std::vector<WayResult> results;
  for (const Way& way : ways_) {
    WayResult& result = results.emplace_back();
    const Executable& executable = way.session->executable();
    result.name = way.name;
    result.times = {Median(way.us), Percentile(way.us, 0.05),
                    Percentile(way.us, 0.95), executable.dispatches(),
                    way.synced_us};
    result.ratio = RatioOfMedians(way.us, fused->us);
    result.gflops = flops / result.times.median_us * 1e-3;
    result.lowering = executable.lowering();
  }
  return results;
}

}  // namespace

double LossTolerance(const Config& config) {
  const bool fp32 = config.compile.device == Device::kCpu ||
                    config.compile.cuda.math == MathMode::kFp32;
  return fp32 ? 1e-3 : 5e-2;
}

const WayResult& BenchRow::Way(absl::string_view name) const {
  const auto it =
      std::find_if(ways.begin(), ways.end(),
                   [&](const WayResult& way) { return way.name == name; });
  CHECK(it != ways.end());
  return *it;
}

Dataset BenchRows(const ModelSpec& model, int64_t batch) {
  const int64_t fit = std::min(kRows, kTableBytes / model.features());
  return RandomRows(std::max(fit, batch), model.features(), model.classes(),
                    /*seed=*/1);
}

absl::StatusOr<BenchRow> BenchStep(
    const Config& config, const Dataset& data, int64_t batch,
    const std::function<void(const std::string&)>& progress) {
  progress("compile and compare losses");
  BenchRow row;
  row.batch = batch;
  StepBench bench;
  RETURN_IF_ERROR(bench.Create(config, data, batch, row.refused));
  ASSIGN_OR_RETURN(
      row.loss_difference,
      bench.CheckLosses(config.optimizer.kind, LossTolerance(config)));
  progress("warm up");
  RETURN_IF_ERROR(bench.WarmUp());
  std::optional<PeakProbe> peak;
  if (config.compile.device == Device::kGpu) {
    RETURN_IF_ERROR(bench.TimeSynced());
  } else {
    peak.emplace(config.compile.threads);
    for (int i = 0; i < kPeakSamples; ++i) peak->Sample();
  }
  Random random(/*seed=*/1);
  for (int64_t i = 0; i < config.samples; ++i) {
    progress(absl::StrCat("sample ", i + 1, " of ", config.samples));
    RETURN_IF_ERROR(bench.Sample(random));
    if (peak) peak->Sample();
  }
  row.ways = bench.Results(TextbookFlops(config.model, batch));
  if (peak) row.peak_gflops = peak->best_gflops();
  row.interrupted = bench.interrupted();
  return row;
}

}  // namespace onestep
