// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_OWN_MEMORY_H_
#define ONESTEP_COMPILER_OWN_MEMORY_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace onestep {

struct Compiled;

// Bytes that an executable holds beside what is bound to it. The first three
// add up to its arena_bytes().
struct OwnMemory {
  // Of values on the way from a weight's gradient to its update, where nothing
  // else lies in the same bytes at another time. 0 where the update is part of
  // the gradient's kernel.
  int64_t gradients = 0;
  int64_t activations = 0;  // all other values of a step, constants included
  int64_t other = 0;        // scratch of kernels, exchanges between workers
  // By param: the workers' own copies, or a device's.
  std::map<std::string, int64_t> params;
};

// Plans the memory of the compiled graphs once more; changes nothing that can
// be seen.
absl::StatusOr<OwnMemory> MemoryOf(Compiled& compiled);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_OWN_MEMORY_H_
