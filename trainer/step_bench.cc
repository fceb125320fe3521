// SPDX-License-Identifier: Apache-2.0
#include "trainer/step_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/status.h"
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

constexpr double kSampleSeconds = 2e-3;
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

enum Way : int { kUnfused, kLoops, kFused, kWays };
constexpr const char* kWayNames[kWays] = {"unfused", "loops", "fused"};

CompileOptions OptionsOf(Way way, const CompileOptions& given) {
  CompileOptions options = given;
  options.fuse = way == kFused;
  if (way == kUnfused) options.kernels = Kernels::kOnednn;
  if (way == kLoops) options.kernels = Kernels::kLoops;
  if (way != kFused) options.dispatch = Dispatch::kOps;
  options.dump_dir.clear();
  return options;
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
  absl::Status Create(const Config& config, const Dataset& data, int64_t batch);
  // The largest relative difference of two losses.
  absl::StatusOr<double> CheckLosses(OptimizerKind optimizer);
  absl::Status WarmUp();
  absl::Status Sample(Random& random, PeakProbe& peak);
  StepTimes Times(Way way) const;
  const std::vector<double>& samples(Way way) const { return us_[way]; }
  int64_t interrupted() const { return interrupted_; }

 private:
  // Microseconds per step.
  absl::StatusOr<double> Time(Way way, int64_t steps);
  absl::StatusOr<double> TimeUndisturbed(Way way);

  std::array<std::unique_ptr<StepSession>, kWays> sessions_;
  std::array<int64_t, kWays> steps_ = {};  // of a sample
  std::array<std::vector<double>, kWays> us_;
  int64_t interrupted_ = 0;
  double retake_seconds_ = 0;
};

absl::Status StepBench::Create(const Config& config, const Dataset& data,
                               int64_t batch) {
  for (const Way way : {kUnfused, kLoops, kFused}) {
    ASSIGN_OR_RETURN(
        sessions_[way],
        StepSession::Create(config.model, config.optimizer,
                            OptionsOf(way, config.compile), data, batch));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> StepBench::CheckLosses(OptimizerKind optimizer) {
  for (auto& session : sessions_) {
    RETURN_IF_ERROR(session->Reset(CheckRate(optimizer)));
  }
  double largest = 0;
  for (int step = 1; step <= kCheckedSteps; ++step) {
    for (auto& session : sessions_) RETURN_IF_ERROR(session->Run(1));
    const double want = sessions_[kUnfused]->loss();
    for (const Way way : {kLoops, kFused}) {
      const double got = sessions_[way]->loss();
      const double difference =
          std::abs(got - want) / std::max(std::abs(want), kLossFloor);
      largest = std::max(largest, difference);
      // Written so that nan is refused.
      if (difference <= kLossTolerance) continue;
      return absl::InternalError(
          absl::StrCat("bench: step ", step, ": want the unfused loss ", want,
                       " within a share of ", kLossTolerance, ", got the ",
                       kWayNames[way], " loss ", got));
    }
  }
  return largest;
}

absl::StatusOr<double> StepBench::Time(Way way, int64_t steps) {
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(sessions_[way]->Run(steps));
  const std::chrono::duration<double, std::micro> us = Clock::now() - start;
  return us.count() / static_cast<double>(steps);
}

absl::Status StepBench::WarmUp() {
  for (const Way way : {kUnfused, kLoops, kFused}) {
    RETURN_IF_ERROR(sessions_[way]->Reset(kTimingRate));
    ASSIGN_OR_RETURN(double best_us, Time(way, 1));
    int slices_without_gain = 0;
    for (int slice = 0;
         slice < kMaxWarmSlices && slices_without_gain < kWarmSlices; ++slice) {
      steps_[way] =
          static_cast<int64_t>(std::ceil(kSampleSeconds * 1e6 / best_us));
      ASSIGN_OR_RETURN(const double us, Time(way, steps_[way]));
      const bool gain = us < best_us * (1 - kWarmGain);
      slices_without_gain = gain ? 0 : slices_without_gain + 1;
      best_us = std::min(best_us, us);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> StepBench::TimeUndisturbed(Way way) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const int64_t switches = InvoluntarySwitches();
    ASSIGN_OR_RETURN(const double us, Time(way, steps_[way]));
    fastest = std::min(fastest, us);
    if (InvoluntarySwitches() == switches) return us;
    ++interrupted_;
    retake_seconds_ += us * static_cast<double>(steps_[way]) * 1e-6;
    if (retake_seconds_ > kMaxRetakeSeconds) break;
  }
  return fastest;
}

absl::Status StepBench::Sample(Random& random, PeakProbe& peak) {
  for (const int32_t way : random.Permutation(kWays)) {
    ASSIGN_OR_RETURN(const double us, TimeUndisturbed(static_cast<Way>(way)));
    us_[way].push_back(us);
  }
  peak.Sample();
  return absl::OkStatus();
}

StepTimes StepBench::Times(Way way) const {
  return {Median(us_[way]), Percentile(us_[way], 0.05),
          Percentile(us_[way], 0.95),
          sessions_[way]->executable().dispatches()};
}

}  // namespace

Dataset BenchRows(const ModelSpec& model, int64_t batch) {
  const int64_t fit = std::min(kRows, kTableBytes / model.features());
  return RandomRows(std::max(fit, batch), model.features(), model.classes(),
                    /*seed=*/1);
}

absl::StatusOr<BenchRow> BenchStep(
    const Config& config, const Dataset& data, int64_t batch,
    const std::function<void(const std::string&)>& progress) {
  progress("compile and compare losses");
  StepBench bench;
  RETURN_IF_ERROR(bench.Create(config, data, batch));
  BenchRow row;
  row.batch = batch;
  ASSIGN_OR_RETURN(row.loss_difference,
                   bench.CheckLosses(config.optimizer.kind));
  progress("warm up");
  RETURN_IF_ERROR(bench.WarmUp());
  PeakProbe peak(config.compile.threads);
  for (int i = 0; i < kPeakSamples; ++i) peak.Sample();
  Random random(/*seed=*/1);
  for (int64_t i = 0; i < config.samples; ++i) {
    progress(absl::StrCat("sample ", i + 1, " of ", config.samples));
    RETURN_IF_ERROR(bench.Sample(random, peak));
  }
  row.unfused = bench.Times(kUnfused);
  row.loops = bench.Times(kLoops);
  row.fused = bench.Times(kFused);
  row.ratio = RatioOfMedians(bench.samples(kUnfused), bench.samples(kFused));
  row.loops_ratio =
      RatioOfMedians(bench.samples(kLoops), bench.samples(kFused));
  row.gflops = TextbookFlops(config.model, batch) / row.fused.median_us * 1e-3;
  row.peak_gflops = peak.best_gflops();
  row.interrupted = bench.interrupted();
  return row;
}

}  // namespace onestep
