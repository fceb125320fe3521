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
    kNone,     // wherever the kernel likes
    kCompact,  // the allowed CPUs in order, one hardware thread per core first
    kList,     // worker w on cpus[w]
  };
  Kind kind = kNone;
  std::vector<int> cpus;  // of kList: not empty, no CPU twice
};

// "none", "compact", or CPUs and ranges of them such as "0,2,4-7".
// InvalidArgument with what was wanted and what it got.
absl::StatusOr<Affinity> ParseAffinity(absl::string_view text);

// The text that ParseAffinity reads, neighbours as ranges.
std::string ToString(const Affinity& affinity);

// The CPU of each of `workers` workers; none of kNone. More workers than
// `allowed` has CPUs start over in kCompact. InvalidArgument when a list is
// shorter than the workers or has a CPU that is not `allowed`. `root` is
// cpu_info.h's.
absl::StatusOr<std::vector<int>> WorkerCpus(const Affinity& affinity,
                                            int workers,
                                            const std::vector<int>& allowed,
                                            const std::string& root = "");

// Lets `thread` run on `cpus` only; a Status that names them when the kernel
// refuses.
absl::Status SetThreadCpus(pthread_t thread, const std::vector<int>& cpus);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_AFFINITY_H_
