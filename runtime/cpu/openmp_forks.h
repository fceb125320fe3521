// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_OPENMP_FORKS_H_
#define ONESTEP_RUNTIME_CPU_OPENMP_FORKS_H_

#include <vector>

#include "absl/status/status.h"
#include "runtime/base/step_trace.h"

namespace onestep {

// Records the OpenMP parallel regions that this thread opens during the
// recorder's lifetime, including those inside oneDNN. The program interposes
// GOMP_parallel, the entry point of GNU's OpenMP runtime. Times are in ticks of
// NowTicks. The recorder allocates nothing: regions that do not fit in `forks`
// are only counted. `forks` must outlive the recorder.
//
// Thread rule: a thread has at most one recorder and alone uses it.
class ForkRecorder {
 public:
  // Returns Unavailable in builds with another OpenMP runtime.
  static absl::Status Available();

  explicit ForkRecorder(std::vector<ForkStamps>& forks);
  ~ForkRecorder();
  ForkRecorder(const ForkRecorder&) = delete;
  ForkRecorder& operator=(const ForkRecorder&) = delete;

  // The number of regions so far, including those that did not fit.
  int64_t count() const;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_OPENMP_FORKS_H_
