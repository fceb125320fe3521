// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_NVTX_H_
#define ONESTEP_RUNTIME_BASE_NVTX_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace onestep {

// A range on the timeline of a tool that follows NVTX (Nsight Systems), in
// domain "onestep", for as long as it lives, on this thread: nested ones end
// last to first. Without a tool, or built without CUDA, it is a test of a
// pointer.
class ScopedRange {
 public:
  explicit ScopedRange(absl::string_view name);
  // Of [first, first + n): "steps 64..95"; of one: "epoch 3".
  ScopedRange(absl::string_view name, int64_t first, int64_t n);
  ~ScopedRange();
  ScopedRange(const ScopedRange&) = delete;
  ScopedRange& operator=(const ScopedRange&) = delete;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_NVTX_H_
