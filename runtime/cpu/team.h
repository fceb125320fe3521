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

// A pool of threads that all run the same function at the same time. The
// threads are started once; between two functions they spin briefly and then
// sleep. Worker 0 is the thread that calls Run.
//
// With an affinity every worker is pinned to its CPU. The calling thread is
// pinned only inside Run; outside, it and the threads that it starts may use
// all CPUs.
//
// Thread rule: one thread at a time creates, runs and destroys a team; with an
// affinity it must always be the same thread. A team without an affinity may
// also be used inside another team's function.
class Team {
 public:
  // Starts workers - 1 threads. Returns the InvalidArgument of WorkerCpus,
  // ResourceExhausted when the system cannot start a thread, or the kernel's
  // error when it refuses to pin one.
  // REQUIRES: workers >= 1.
  static absl::StatusOr<std::unique_ptr<Team>> Create(int workers,
                                                      const Affinity& affinity);

  // Joins the threads.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls fn(w) once for every worker w, in parallel, and returns when all
  // calls have returned. Writes before Run are visible in fn, and writes of fn
  // are visible after Run. Inside fn denormal operands and results are flushed
  // to zero; afterwards the calling thread's mode is restored. Allocates
  // nothing. REQUIRES: Run is not called from inside fn; fn does not throw.
  void Run(absl::FunctionRef<void(int worker)> fn);

  // A barrier for the workers inside fn.
  // REQUIRES: all workers call Wait equally often.
  Barrier& barrier() { return barrier_; }
  int workers() const { return barrier_.workers(); }

 private:
  Team(int workers, int spins) : barrier_(workers, spins) {}
  absl::Status Start();
  absl::Status Pin(const std::vector<int>& cpus);
  // Pins the calling thread to `cpus`; does nothing when they are empty.
  static void MoveCaller(const std::vector<int>& cpus);
  void Work(int worker);

  // All workers synchronise here before and after each function.
  Barrier barrier_;
  // The function to run, published by the barrier; null tells the threads to
  // exit.
  const absl::FunctionRef<void(int)>* fn_ = nullptr;
  std::vector<std::thread> threads_;  // of workers 1, 2, ...
  // The CPU of worker 0 inside Run, and the CPUs that the calling thread gets
  // back after it; both are empty when the team is not pinned.
  std::vector<int> worker0_cpu_, caller_cpus_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_TEAM_H_
