// SPDX-License-Identifier: Apache-2.0
// What the stamps of a traced run say of each call, for profile.h.
#ifndef ONESTEP_TRAINER_MEASURE_WORKER_TIMES_H_
#define ONESTEP_TRAINER_MEASURE_WORKER_TIMES_H_

#include <cstdint>
#include <vector>

#include "compiler/compiler.h"
#include "runtime/cpu/dispatch_cost.h"

namespace onestep {

// What one worker's steps took in one slice or several, in nanoseconds: a value
// per step, but for `run` (a value per slice).
struct WorkerTimes {
  std::vector<std::vector<double>> calls;  // [call][step], without what follows
  std::vector<double> fork_join, dispatch, run;
  int64_t forks_missed = 0;

  void Append(const WorkerTimes& more);
};

// Adds what worker `w`, which has these steps to call, did in a trace. What
// reading the clock took is taken off, and what calls cost that compute nothing
// counts as dispatch. `slice_steps`: of the slice that the trace is a part of.
// REQUIRES: times.run has the slice's value.
void AddTrace(const StepTrace& trace, int w, const std::vector<StepInfo>& steps,
              const DispatchCost& cost, int64_t slice_steps,
              WorkerTimes& times);

// Of a GPU, whose stamps are its own: the calls, less what an empty kernel
// takes.
void AddGpuTrace(const StepTrace& trace, WorkerTimes& times);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_WORKER_TIMES_H_
