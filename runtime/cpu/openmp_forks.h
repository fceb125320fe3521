// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_OPENMP_FORKS_H_
#define ONESTEP_RUNTIME_CPU_OPENMP_FORKS_H_

#include <vector>

#include "absl/status/status.h"
#include "runtime/base/step_trace.h"

namespace onestep {

// Writes down the parallel regions that this thread opens while it lives, our
// own and those inside oneDNN: both ask GNU's OpenMP runtime for them, whose
// entry this program takes in between; times are by NowTicks. Allocates
// nothing: regions for which `forks` has no room are only counted.
//
// Thread rule: one recorder at a time on a thread, and used by it alone.
class ForkRecorder {
 public:
  // Unavailable where parallel regions do not pass that entry.
  static absl::Status Available();

  explicit ForkRecorder(std::vector<ForkStamps>& forks);
  ~ForkRecorder();
  ForkRecorder(const ForkRecorder&) = delete;
  ForkRecorder& operator=(const ForkRecorder&) = delete;

  // So far, those without room included.
  int64_t count() const;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_OPENMP_FORKS_H_
