// SPDX-License-Identifier: Apache-2.0
// How far apart cores are: what threads that write the same rows pay for it.
#ifndef ONESTEP_RUNTIME_CPU_CORE_LATENCY_H_
#define ONESTEP_RUNTIME_CPU_CORE_LATENCY_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/cpu/affinity.h"

namespace onestep {

struct CoreLatency {
  int from = 0, to = 0;  // CPUs
  double ns = 0;         // in which a cache line that one wrote is the other's

  // Cores of one L3 are seen at 20 to 50 ns, those of two at 100 to 250.
  bool far() const { return ns > 100; }
};

// The longest of those between the CPU of the first and of each other of
// `threads` workers that `affinity` places; of more than 17 CPUs, 16 of the
// others, evenly spaced. With Affinity::kNone those on which they run best: one
// per core first. The median of many round trips, 2 or 3 ms a pair. A virtual
// machine may be moved, so that it holds for a moment only.
// FailedPrecondition: there are fewer than two CPUs; errors of Team::Create.
// REQUIRES: threads >= 1.
absl::StatusOr<CoreLatency> MeasureCoreLatency(int threads,
                                               const Affinity& affinity = {});

// "cores 0 and 1: 38 ns, near"
std::string ToString(const CoreLatency& latency);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_CORE_LATENCY_H_
