// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/worker_times.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace onestep {
namespace {

void Extend(std::vector<double>& to, const std::vector<double>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// What a call costs that computes nothing.
double DispatchNs(const StepInfo& step, const DispatchCost& cost) {
  if (!absl::StartsWith(step.implementation, "onednn")) return cost.call_ns;
  return step.op == "matmul" ? cost.matmul_ns : cost.eltwise_ns;
}

}  // namespace

void WorkerTimes::Append(const WorkerTimes& more) {
  calls.resize(more.calls.size());
  for (size_t c = 0; c < calls.size(); ++c) Extend(calls[c], more.calls[c]);
  Extend(fork_join, more.fork_join);
  Extend(dispatch, more.dispatch);
  Extend(run, more.run);
  forks_missed += more.forks_missed;
}

void AddTrace(const StepTrace& trace, int w, const std::vector<StepInfo>& steps,
              const DispatchCost& cost, int64_t slice_steps,
              WorkerTimes& times) {
  const StepTrace::Worker& worker = trace.workers[w];
  const double clock_ns = cost.clock_ns;
  times.calls.resize(worker.calls);
  times.forks_missed += worker.forks_missed;
  int64_t next_fork = 0;
  for (int64_t s = 0; s < trace.steps; ++s) {
    double dispatch = 0, fork_join = 0;
    for (int64_t c = 0; c < worker.calls; ++c) {
      double ns = worker.at(s, c + 1) - worker.at(s, c) - clock_ns;
      for (; next_fork < worker.forks_recorded &&
             worker.forks[next_fork].end <= worker.at(s, c + 1);
           ++next_fork) {
        const ForkStamps& fork = worker.forks[next_fork];
        const double waited = fork.body_begin - fork.begin + fork.end -
                              fork.body_end - 2 * clock_ns;
        fork_join += waited;
        // Two of the fork's four reads are in the rest of the call.
        ns -= waited + 4 * clock_ns;
      }
      const double call_ns = std::min(ns, DispatchNs(steps[c], cost));
      dispatch += call_ns;
      times.calls[c].push_back(ns - call_ns);
    }
    if (s + 1 < trace.steps) {
      dispatch += worker.at(s + 1, 0) - worker.at(s, worker.calls) - clock_ns;
    }
    times.dispatch.push_back(dispatch);
    times.fork_join.push_back(fork_join);
  }
  const double outside = worker.at(0, 0) - trace.begin + trace.end -
                         worker.at(trace.steps - 1, worker.calls);
  times.run.back() += outside / static_cast<double>(slice_steps);
}

void AddGpuTrace(const StepTrace& trace, WorkerTimes& times) {
  const StepTrace::Worker& worker = trace.workers[0];
  times.calls.resize(worker.calls);
  for (int64_t s = 0; s < trace.steps; ++s) {
    for (int64_t c = 0; c < worker.calls; ++c) {
      times.calls[c].push_back(static_cast<double>(
          worker.at(s, c + 1) - worker.at(s, c) - worker.empty_ns));
    }
  }
}

}  // namespace onestep
