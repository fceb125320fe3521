// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_TEAM_H_
#define ONESTEP_RUNTIME_CPU_TEAM_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/cpu/affinity.h"
#include "runtime/cpu/barrier.h"

namespace onestep {

// Threads that are started once and then run one function after another, all
// of them the same one at the same time. Worker 0 is the calling thread; the
// others spin briefly and then sleep between two functions.
//
// With an affinity every worker stays on its CPU, the calling thread while it
// is inside Run: elsewhere it, the threads it starts and other teams have all
// CPUs.
//
// Thread rule: created, run and destroyed by one thread at a time, with an
// affinity always the same. Without one, also inside another team's function.
class Team {
 public:
  // Starts workers - 1 threads. InvalidArgument: WorkerCpus() has no CPU for
  // each; ResourceExhausted: the system has no more threads; otherwise the
  // kernel's reason not to pin one.
  // REQUIRES: workers >= 1.
  static absl::StatusOr<std::unique_ptr<Team>> Create(int workers,
                                                      const Affinity& affinity);

  // Joins the threads.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls fn(w) once for every worker w at the same time and returns when all
  // have returned. What was written before is seen in fn, and what fn wrote
  // after it. Denormal numbers count as zero inside fn, in operands and in
  // results; the calling thread's own mode comes back. Allocates nothing.
  // REQUIRES: not from inside fn; fn does not throw.
  void Run(absl::FunctionRef<void(int worker)> fn);

  // For the workers inside fn.
  // REQUIRES: all of them wait there equally often.
  Barrier& barrier() { return barrier_; }
  int workers() const { return barrier_.workers(); }

 private:
  Team(int workers, int spins) : barrier_(workers, spins) {}
  absl::Status Start();
  absl::Status Pin(const std::vector<int>& cpus);
  // The calling thread to these; empty: it stays where it is.
  static void MoveCaller(const std::vector<int>& cpus);
  void Work(int worker);

  // Before and after each function all workers meet here.
  Barrier barrier_;
  // What the barrier hands over; null: the end.
  const absl::FunctionRef<void(int)>* fn_ = nullptr;
  std::vector<std::thread> threads_;  // of workers 1, 2, ...
  // The calling thread's inside Run, and those it comes back to; empty: it is
  // not pinned.
  std::vector<int> own_cpu_, caller_cpus_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_TEAM_H_
