// SPDX-License-Identifier: Apache-2.0
// Which CPU each worker of a team runs on.
#ifndef ONESTEP_RUNTIME_CPU_AFFINITY_H_
#define ONESTEP_RUNTIME_CPU_AFFINITY_H_

#include <pthread.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onestep {

struct Affinity {
  enum Kind {
    kNone,     // workers are not pinned
    kCompact,  // the allowed CPUs in order, one hardware thread per core first
    kList,     // worker w runs on cpus[w]
  };
  Kind kind = kNone;
  std::vector<int> cpus;  // kList only: not empty, no CPU twice
};

// Parses "none", "compact", or a list of CPUs and ranges such as "0,2,4-7".
// Returns InvalidArgument when the text is none of these or repeats a CPU.
absl::StatusOr<Affinity> ParseAffinity(absl::string_view text);

// The text that ParseAffinity reads; consecutive CPUs are written as ranges.
std::string ToString(const Affinity& affinity);

// The CPU of each of `workers` workers; an empty list for kNone. With kCompact
// and more workers than allowed CPUs, the CPUs are assigned repeatedly. Returns
// InvalidArgument when a list has fewer CPUs than there are workers or a CPU
// that is not in `allowed`. `root` is a prefix of /sys for tests (cpu_info.h).
absl::StatusOr<std::vector<int>> WorkerCpus(const Affinity& affinity,
                                            int workers,
                                            const std::vector<int>& allowed,
                                            const std::string& root = "");

// Pins `thread` to `cpus`. Returns the kernel's error with the list of CPUs
// when it refuses. REQUIRES: cpus is not empty.
absl::Status SetThreadCpus(pthread_t thread, const std::vector<int>& cpus);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_AFFINITY_H_
