// SPDX-License-Identifier: Apache-2.0
// Whether something else had a core while this process wanted it.
#ifndef ONESTEP_TRAINER_MEASURE_DISTURBANCE_H_
#define ONESTEP_TRAINER_MEASURE_DISTURBANCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace onestep {

// How long each thread of this process has waited for a core so far, in
// nanoseconds.
using CoreWaits = std::map<std::string, int64_t>;

// From Linux's schedstat: the time that threads could have run but did not, be
// it that they lost their core or that they were woken late. Where the kernel
// keeps none, of the whole process: a scheduler's slice of 3 ms for each time
// that a thread lost its core. `root` stands in front of /proc so that tests
// can show other machines.
CoreWaits ReadCoreWaits(const std::string& root);
CoreWaits CoreWaitsNow();  // of this machine
using CoreWaitsFn = std::function<CoreWaits()>;

// Watches from its making on. Reading takes some 10 us a thread.
class Disturbance {
 public:
  // Of the time, what a thread waits at most when nothing else runs. Measured
  // on 2 cores of Zen 5: 0 while it computes or spins, 1.8 % while it sleeps
  // and wakes every 100 us; but 10 to 100 % of 5 ms on a busy machine.
  static constexpr double kShare = 0.02;

  explicit Disturbance(CoreWaitsFn waits = CoreWaitsNow);

  // Whether a thread has waited for longer than that.
  bool Seen() const;

 private:
  const CoreWaitsFn waits_;
  const CoreWaits before_;
  const int64_t begin_ns_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_DISTURBANCE_H_
