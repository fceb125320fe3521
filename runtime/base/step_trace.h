// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_STEP_TRACE_H_
#define ONESTEP_RUNTIME_BASE_STEP_TRACE_H_

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace onestep {

// The times of a parallel region on the thread that opened it: the fork lasts
// from `begin` to `body_begin`, the join from `body_end` to `end`.
struct ForkStamps {
  int64_t begin = 0, body_begin = 0, body_end = 0, end = 0;
};

// The begin and end of each call of each step of one Run. While a run records,
// times are in ticks of NowTicks; TicksToNs converts them to the time of NowNs.
// On a GPU the durations are those measured on the device, laid end to end from
// `begin` on.
struct StepTrace {
  struct Worker {
    int64_t begin = 0, end = 0;  // of this worker's part of the run
    int64_t calls = 0;           // number of calls per step
    // [steps, calls + 1]: the begin of a step's first call, then the end of
    // each call. A call begins when the previous one ends.
    std::vector<int64_t> stamps;
    // The parallel regions that the worker opened, in order. Only the first
    // `forks_recorded` entries are valid; `forks_missed` more regions did not
    // fit.
    std::vector<ForkStamps> forks;
    int64_t forks_recorded = 0, forks_missed = 0;
    // On a GPU: the duration of an empty call, which is part of each call.
    int64_t empty_ns = 0;

    int64_t at(int64_t step, int64_t call) const {
      return stamps[step * (calls + 1) + call];
    }
  };
  void TicksToNs(const TickScale& scale);

  int64_t begin = 0, end = 0;  // of the whole run, on the calling thread
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
