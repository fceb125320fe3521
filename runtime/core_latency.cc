// SPDX-License-Identifier: Apache-2.0
#include "runtime/core_latency.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/affinity.h"
#include "runtime/clock.h"
#include "runtime/cpu_info.h"
#include "runtime/status.h"

namespace onestep {
namespace {

constexpr int kRounds = 31;
constexpr int kTrips = 200;  // there and back, in a round
constexpr int kTurns = 2 * kRounds * kTrips;

// A line, and beside it what prefetchers fetch with it, for itself.
struct alignas(128) Line {
  std::atomic<int> turn = -1;
};

// Spins without a pause, which takes longer than what is measured.
void WaitFor(const Line& line, int turn) {
  while (line.turn.load(std::memory_order_acquire) != turn) {
  }
}

// Takes every second turn, from `first` on.
void TakeTurns(Line& line, int first, int end) {
  for (int turn = first; turn < end; turn += 2) {
    WaitFor(line, turn - 1);
    line.turn.store(turn, std::memory_order_release);
  }
}

// Nanoseconds from `from` to `to`.
absl::StatusOr<double> Measure(int from, int to) {
  Line line;
  // Both go on even where one was refused, so that neither waits for ever.
  absl::Status other_pinned;
  std::thread other([&] {
    other_pinned = SetThreadCpus(pthread_self(), {to});
    TakeTurns(line, 1, kTurns);
  });
  absl::Status pinned;
  std::array<double, kRounds> ns;
  std::thread timer([&] {
    pinned = SetThreadCpus(pthread_self(), {from});
    int turn = 0;
    for (double& round : ns) {
      const int64_t begin = NowNs();
      TakeTurns(line, turn, turn + 2 * kTrips);
      turn += 2 * kTrips;
      round = static_cast<double>(NowNs() - begin) / (2 * kTrips);
    }
  });
  timer.join();
  other.join();
  RETURN_IF_ERROR(pinned);
  RETURN_IF_ERROR(other_pinned);
  std::nth_element(ns.begin(), ns.begin() + kRounds / 2, ns.end());
  return ns[kRounds / 2];
}

}  // namespace

absl::StatusOr<CoreLatency> MeasureCoreLatency(int threads) {
  std::vector<int> cpus = CoresFirst(AffinityCpus());
  cpus.resize(std::min(cpus.size(), static_cast<size_t>(std::max(threads, 0))));
  if (cpus.size() < 2) {
    return absl::FailedPreconditionError(
        absl::StrCat("core latency: want 2 CPUs or more, got ", cpus.size()));
  }
  CoreLatency farthest;
  for (size_t i = 1; i < cpus.size(); ++i) {
    ASSIGN_OR_RETURN(const double ns, Measure(cpus[0], cpus[i]));
    if (ns > farthest.ns) farthest = {cpus[0], cpus[i], ns};
  }
  return farthest;
}

std::string ToString(const CoreLatency& latency) {
  return absl::StrFormat("cores %d and %d: %.0f ns, %s", latency.from,
                         latency.to, latency.ns,
                         latency.far() ? "far" : "near");
}

}  // namespace onestep
