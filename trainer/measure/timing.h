// SPDX-License-Identifier: Apache-2.0
// How the steps of several ways are timed on equal terms.
#ifndef ONESTEP_TRAINER_MEASURE_TIMING_H_
#define ONESTEP_TRAINER_MEASURE_TIMING_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/data/random.h"
#include "trainer/measure/disturbance.h"
#include "trainer/measure/step_session.h"

namespace onestep {

// Runs so many steps of one way and returns when they are done.
using RunSteps = std::function<absl::Status(int64_t)>;

// Of the session, which must outlive it: Cancelled once a signal came.
RunSteps StepsOf(StepSession& session);

// Finds the fastest sample of one way.
class StepTimer {
 public:
  explicit StepTimer(RunSteps run, CoreWaitsFn waits = CoreWaitsNow);

  // Takes a sample of some `aim_us`, as far as the time of a step is known by
  // now: the first is one step. Gives what it took.
  absl::StatusOr<double> Sample(double aim_us);

  // Microseconds per step of the fastest sample; infinite before the first.
  double us() const { return us_; }
  // Whether nothing else had a core during one of them that says enough: not
  // the first, unless it is long, and none of less than half the time aimed at,
  // in which the begin and end of a run show.
  bool undisturbed() const { return undisturbed_; }

 private:
  RunSteps run_;
  CoreWaitsFn waits_;
  double us_ = std::numeric_limits<double>::infinity();
  bool undisturbed_ = false;
};

// Takes at least `least` samples after the first, of some `slice_us` each and
// `total_us` together; up to three times as many until one is undisturbed.
absl::Status TakeSamples(StepTimer& timer, double slice_us, double total_us,
                         int least);

// Takes samples of all ways in turn, each of at least ten milliseconds.
class Timing {
 public:
  // `seed`: of the order that they are taken in.
  Timing(const std::vector<RunSteps>& ways, uint64_t seed);

  // Runs each until it gets no faster.
  absl::Status WarmUp();

  // A sample of each, in an order drawn anew. A sample during which something
  // else had a core says little about the step: it is taken again. On a machine
  // that is never quiet that must end: after so many tries, and when it took
  // three times as long as the samples themselves, the fastest counts.
  absl::Status Sample();

  // The samples of a way so far, microseconds per step.
  const std::vector<double>& us(size_t way) const { return ways_[way].us; }
  // Tries during which something else had a core.
  int64_t interrupted() const { return interrupted_; }

 private:
  struct Way {
    RunSteps run;
    int64_t steps = 1;  // of a sample
    std::vector<double> us;
  };

  absl::StatusOr<double> TimeUndisturbed(const Way& way);

  std::vector<Way> ways_;
  Random random_;
  int64_t interrupted_ = 0;
  double retake_seconds_;  // that may still be spent
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_TIMING_H_
