// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/timing.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "runtime/status.h"

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

// How often a thread of this process lost its core while it had work.
int64_t InvoluntarySwitches() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

absl::StatusOr<double> MicrosPerStep(const RunSteps& run, int64_t steps) {
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(run(steps));
  const std::chrono::duration<double, std::micro> us = Clock::now() - start;
  return us.count() / static_cast<double>(steps);
}

absl::StatusOr<double> FastestStep(const RunSteps& run, double slice_us,
                                   double total_us, int least) {
  ASSIGN_OR_RETURN(double best, MicrosPerStep(run, 1));
  double spent = 0;
  for (int slice = 0; slice < least || spent < total_us; ++slice) {
    const auto steps = static_cast<int64_t>(std::ceil(slice_us / best));
    ASSIGN_OR_RETURN(const double us, MicrosPerStep(run, steps));
    best = std::min(best, us);
    spent += us * static_cast<double>(steps);
  }
  return best;
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
    const int64_t switches = InvoluntarySwitches();
    ASSIGN_OR_RETURN(const double us, MicrosPerStep(way.run, way.steps));
    fastest = std::min(fastest, us);
    const double seconds = us * static_cast<double>(way.steps) * 1e-6;
    if (tries == 0) retake_seconds_ += kRetakeShare * seconds;
    if (InvoluntarySwitches() == switches) return us;
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
