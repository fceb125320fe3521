// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/team.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/cpu/cpu_info.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace onestep {
namespace {

// Flushes denormals to zero in this thread during the object's lifetime.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : mode_(_mm_getcsr()) {
    _mm_setcsr(mode_ | _MM_FLUSH_ZERO_ON | 0x40 /* denormals are zero */);
  }
  ~FlushDenormals() { _mm_setcsr(mode_); }

 private:
  uint32_t mode_;
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(mode_));
    asm volatile("msr fpcr, %0" ::"r"(mode_ | uint64_t{1} << 24));
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" ::"r"(mode_)); }

 private:
  uint64_t mode_;
#endif
};

// The number of CPUs that spinning threads may keep busy.
int CpusToSpinOn(const std::vector<int>& allowed) {
  const int cpus = static_cast<int>(allowed.size());
  const int limit = CgroupCpuLimit();
  return limit > 0 ? std::min(cpus, limit) : cpus;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Team>> Team::Create(int workers,
                                                   const Affinity& affinity) {
  CHECK(workers >= 1);
  const std::vector<int> allowed = AffinityCpus();
  ASSIGN_OR_RETURN(const std::vector<int> cpus,
                   WorkerCpus(affinity, workers, allowed));
  // With more workers than CPUs a spinning worker would keep the CPU from the
  // worker that it waits for: 8 workers on two cores take 30 us per barrier
  // without spinning and 160 us with it.
  const int spins = workers > CpusToSpinOn(allowed) ? 0 : Barrier::kSpins;
  std::unique_ptr<Team> team(new Team(workers, spins));
  RETURN_IF_ERROR(team->Start());
  if (!cpus.empty()) {
    RETURN_IF_ERROR(team->Pin(cpus));
    team->worker0_cpu_ = {cpus[0]};
    team->caller_cpus_ = allowed;
  }
  return team;
}

absl::Status Team::Start() {
  threads_.reserve(workers() - 1);
  for (int w = 1; w < workers(); ++w) {
    try {
      threads_.emplace_back(&Team::Work, this, w);
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(
          absl::StrCat("team: want ", workers() - 1, " threads, got ", w - 1,
                       ": ", error.what()));
    }
  }
  return absl::OkStatus();
}

absl::Status Team::Pin(const std::vector<int>& cpus) {
  for (int w = 1; w < workers(); ++w) {
    RETURN_IF_ERROR(SetThreadCpus(threads_[w - 1].native_handle(), {cpus[w]}));
  }
  return absl::OkStatus();
}

Team::~Team() {
  fn_ = nullptr;
  // Arrive for the workers whose threads could not be started.
  for (int w = static_cast<int>(threads_.size()) + 1; w < workers(); ++w) {
    barrier_.Arrive(w);
  }
  barrier_.Wait(0);
  for (std::thread& thread : threads_) thread.join();
}

void Team::MoveCaller(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  const absl::Status status = SetThreadCpus(pthread_self(), cpus);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
}

void Team::Run(absl::FunctionRef<void(int worker)> fn) {
  [[maybe_unused]] const FlushDenormals flush;
  MoveCaller(worker0_cpu_);
  fn_ = &fn;
  barrier_.Wait(0);
  fn(0);
  barrier_.Wait(0);
  MoveCaller(caller_cpus_);
}

void Team::Work(int worker) {
  [[maybe_unused]] const FlushDenormals flush;
  while (true) {
    barrier_.Wait(worker);
    if (fn_ == nullptr) return;
    (*fn_)(worker);
    barrier_.Wait(worker);
  }
}

}  // namespace onestep
