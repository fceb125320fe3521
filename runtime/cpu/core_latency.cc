// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/core_latency.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/cpu/cpu_info.h"
#include "runtime/cpu/team.h"

namespace onestep {
namespace {

constexpr int kRounds = 31;
constexpr int kTrips = 200;  // round trips per round
constexpr int kTurns = 2 * kRounds * kTrips;
constexpr size_t kMaxPairs = 16;

// A cache line, together with its neighbour, which the prefetcher loads too.
struct alignas(128) Line {
  std::atomic<int> turn = -1;
};

// Spins without a pause instruction, which would take longer than the transfer
// that is measured.
void WaitFor(const Line& line, int turn) {
  while (line.turn.load(std::memory_order_acquire) != turn) {
  }
}

// Stores turns first, first + 2, ... below `end`, each after the other thread
// has stored the turn before it.
void TakeTurns(Line& line, int first, int end) {
  for (int turn = first; turn < end; turn += 2) {
    WaitFor(line, turn - 1);
    line.turn.store(turn, std::memory_order_release);
  }
}

// The latency from CPU `from` to CPU `to` in nanoseconds.
absl::StatusOr<double> Measure(int from, int to) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Team> team,
                   Team::Create(2, {Affinity::kList, {from, to}}));
  Line line;
  std::array<double, kRounds> ns;
  team->Run([&](int worker) {
    if (worker == 1) return TakeTurns(line, 1, kTurns);
    int turn = 0;
    for (double& round : ns) {
      const int64_t begin = NowNs();
      TakeTurns(line, turn, turn + 2 * kTrips);
      turn += 2 * kTrips;
      round = static_cast<double>(NowNs() - begin) / (2 * kTrips);
    }
  });
  std::nth_element(ns.begin(), ns.begin() + kRounds / 2, ns.end());
  return ns[kRounds / 2];
}

}  // namespace

absl::StatusOr<CoreLatency> MeasureCoreLatency(int threads,
                                               const Affinity& affinity) {
  const std::vector<int> allowed = AffinityCpus();
  Affinity placed = affinity;
  if (placed.kind == Affinity::kNone) placed.kind = Affinity::kCompact;
  ASSIGN_OR_RETURN(std::vector<int> cpus, WorkerCpus(placed, threads, allowed));
  cpus.resize(std::min(cpus.size(), allowed.size()));  // no CPU twice
  if (cpus.size() < 2) {
    return absl::FailedPreconditionError(
        absl::StrCat("core latency: want 2 CPUs or more, got ", cpus.size()));
  }
  const size_t others = cpus.size() - 1;
  const size_t pairs = std::min(others, kMaxPairs);
  CoreLatency farthest;
  for (size_t i = 1; i <= pairs; ++i) {
    const int to = cpus[i * others / pairs];
    ASSIGN_OR_RETURN(const double ns, Measure(cpus[0], to));
    if (ns > farthest.ns) farthest = {cpus[0], to, ns};
  }
  return farthest;
}

std::string ToString(const CoreLatency& latency) {
  return absl::StrFormat("cores %d and %d: %.0f ns, %s", latency.from,
                         latency.to, latency.ns,
                         latency.far() ? "far" : "near");
}

}  // namespace onestep
