// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_AVAILABLE_MEMORY_H_
#define ONESTEP_TRAINER_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace onestep {

// As messages give it.
inline double MiB(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

// Bytes that this machine can still give out without swapping: MemAvailable of
// <root>/proc/meminfo; -1: not known.
int64_t AvailableMemory(const std::string& root = "");

// ResourceExhausted "<what> want 22218 MiB of memory, 9000 are available" where
// `bytes` are not.
absl::Status CheckMemory(const std::string& what, int64_t bytes,
                         int64_t available = AvailableMemory());

}  // namespace onestep

#endif  // ONESTEP_TRAINER_AVAILABLE_MEMORY_H_
