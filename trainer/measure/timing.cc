// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "runtime/base/status.h"
#include "trainer/interrupt.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

// A team takes its weights in and gives them back in each: 40 us.
constexpr double kSampleSeconds = 10e-3;

// Warm is who was not faster by this much in so many slices; or after so many
// slices in all, on a machine that never comes to rest.
constexpr double kWarmGain = 0.01;
constexpr int kWarmSlices = 8;
constexpr int kMaxWarmSlices = 200;

constexpr int kMaxTries = 50;
// Of each sample, and to begin with.
constexpr double kRetakeShare = 3;
constexpr double kRetakeSeconds = 0.1;

// Of as many samples as are wanted, until one is undisturbed.
constexpr int kMostSamples = 3;

// The first step finds caches and threads cold: if shorter, it is no measure.
constexpr double kColdUs = 50e3;

// Microseconds per step. REQUIRES: steps >= 1.
absl::StatusOr<double> MicrosPerStep(const RunSteps& run, int64_t steps) {
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(run(steps));
  const std::chrono::duration<double, std::micro> us = Clock::now() - start;
  return us.count() / static_cast<double>(steps);
}

}  // namespace

RunSteps StepsOf(StepSession& session) {
  return [&session](int64_t steps) {
    if (PendingSignal() != 0) return absl::CancelledError("stopped");
    return session.Run(steps);
  };
}

StepTimer::StepTimer(RunSteps run, CoreWaitsFn waits)
    : run_(std::move(run)), waits_(std::move(waits)) {}

absl::StatusOr<double> StepTimer::Sample(double aim_us) {
  const auto steps =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(aim_us / us_)));
  const Disturbance disturbance(waits_);
  ASSIGN_OR_RETURN(const double us, MicrosPerStep(run_, steps));
  const double sample_us = us * static_cast<double>(steps);
  const bool is_first = us_ == std::numeric_limits<double>::infinity();
  const double least_us = is_first ? kColdUs : aim_us / 2;
  undisturbed_ |= sample_us >= least_us && !disturbance.Seen();
  us_ = std::min(us_, us);
  return sample_us;
}

absl::Status TakeSamples(StepTimer& timer, double slice_us, double total_us,
                         int least) {
  RETURN_IF_ERROR(timer.Sample(slice_us).status());
  double spent_us = 0;
  const auto more = [&](int taken, int times) {
    return taken < times * least || spent_us < times * total_us;
  };
  for (int taken = 0;
       more(taken, 1) || (!timer.undisturbed() && more(taken, kMostSamples));
       ++taken) {
    ASSIGN_OR_RETURN(const double us, timer.Sample(slice_us));
    spent_us += us;
  }
  return absl::OkStatus();
}

Timing::Timing(const std::vector<RunSteps>& ways, uint64_t seed)
    : random_(seed), retake_seconds_(kRetakeSeconds) {
  for (const RunSteps& run : ways) ways_.push_back({run, 1, {}});
}

absl::Status Timing::WarmUp() {
  for (Way& way : ways_) {
    ASSIGN_OR_RETURN(double best_us, MicrosPerStep(way.run, 1));
    int slices_without_gain = 0;
    for (int slice = 0;
         slice < kMaxWarmSlices && slices_without_gain < kWarmSlices; ++slice) {
      way.steps =
          static_cast<int64_t>(std::ceil(kSampleSeconds * 1e6 / best_us));
      ASSIGN_OR_RETURN(const double us, MicrosPerStep(way.run, way.steps));
      const bool gain = us < best_us * (1 - kWarmGain);
      slices_without_gain = gain ? 0 : slices_without_gain + 1;
      best_us = std::min(best_us, us);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Timing::TimeUndisturbed(const Way& way) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const Disturbance disturbance;
    ASSIGN_OR_RETURN(const double us, MicrosPerStep(way.run, way.steps));
    fastest = std::min(fastest, us);
    const bool disturbed = disturbance.Seen();
    const double seconds = us * static_cast<double>(way.steps) * 1e-6;
    if (tries == 0) retake_seconds_ += kRetakeShare * seconds;
    if (!disturbed) return us;
    ++interrupted_;
    retake_seconds_ -= seconds;
    if (retake_seconds_ < 0) break;
  }
  return fastest;
}

absl::Status Timing::Sample() {
  for (const int32_t i : random_.Permutation(std::ssize(ways_))) {
    ASSIGN_OR_RETURN(const double us, TimeUndisturbed(ways_[i]));
    ways_[i].us.push_back(us);
  }
  return absl::OkStatus();
}

}  // namespace onestep
