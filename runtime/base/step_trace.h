// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_STEP_TRACE_H_
#define ONESTEP_RUNTIME_BASE_STEP_TRACE_H_

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace onestep {

// A parallel region as the thread that opened it saw it: what is between
// `begin` and `body_begin` is the fork, between `body_end` and `end` the join.
struct ForkStamps {
  int64_t begin = 0, body_begin = 0, body_end = 0, end = 0;
};

// When the calls of the steps of one Run began and ended; all times by NowNs,
// though they were taken by NowTicks.
// On a GPU they are those of the device, laid end to end from `begin` on.
struct StepTrace {
  struct Worker {
    int64_t begin = 0, end = 0;  // of its part of the run
    int64_t calls = 0;           // of a step
    // [steps, calls + 1]: the begin of a step's first call, and the end of
    // each: a call begins when the one before it ends.
    std::vector<int64_t> stamps;
    // Regions that the worker opened, in order; the first `forks_recorded`.
    // There was no room for `forks_missed` more.
    std::vector<ForkStamps> forks;
    int64_t forks_recorded = 0, forks_missed = 0;
    // On a GPU: what a call takes that does nothing, a part of each.
    int64_t empty_ns = 0;

    int64_t at(int64_t step, int64_t call) const {
      return stamps[step * (calls + 1) + call];
    }
  };
  void TicksToNs(const TickScale& scale);

  int64_t begin = 0, end = 0;  // of the run as its caller saw it
  int64_t steps = 0;
  std::vector<Worker> workers;
};

inline void StepTrace::TicksToNs(const TickScale& scale) {
  begin = scale.ToNs(begin);
  end = scale.ToNs(end);
  for (Worker& worker : workers) {
    worker.begin = scale.ToNs(worker.begin);
    worker.end = scale.ToNs(worker.end);
    for (int64_t& stamp : worker.stamps) stamp = scale.ToNs(stamp);
    for (int64_t i = 0; i < worker.forks_recorded; ++i) {
      ForkStamps& fork = worker.forks[i];
      for (int64_t* stamp :
           {&fork.begin, &fork.body_begin, &fork.body_end, &fork.end}) {
        *stamp = scale.ToNs(*stamp);
      }
    }
  }
}

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_STEP_TRACE_H_
