// SPDX-License-Identifier: Apache-2.0
// The latency between cores, which threads pay when they write the same rows.
#ifndef ONESTEP_RUNTIME_CPU_CORE_LATENCY_H_
#define ONESTEP_RUNTIME_CPU_CORE_LATENCY_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/cpu/affinity.h"

namespace onestep {

struct CoreLatency {
  int from = 0, to = 0;  // CPUs
  double ns = 0;         // time to transfer a cache line between them

  // Measured: 20 to 50 ns for cores that share an L3, 100 to 250 ns for cores
  // of different L3s.
  bool far() const { return ns > 100; }
};

// Measures the latency between the CPU of worker 0 and the CPUs of the other
// workers, and returns the largest. `affinity` places the `threads` workers;
// Affinity::kNone is measured as kCompact. With more than 17 CPUs only 16
// evenly spaced other CPUs are measured. Each pair takes 2 or 3 ms; the result
// is the median of 31 rounds. On a virtual machine the cores may move at any
// time, so that the result holds only for a moment. Returns FailedPrecondition
// when there are fewer than two CPUs, and the errors of Team::Create. REQUIRES:
// threads >= 1.
absl::StatusOr<CoreLatency> MeasureCoreLatency(int threads,
                                               const Affinity& affinity = {});

// "cores 0 and 1: 38 ns, near"
std::string ToString(const CoreLatency& latency);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_CORE_LATENCY_H_
