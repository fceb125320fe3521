// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_NVTX_H_
#define ONESTEP_RUNTIME_BASE_NVTX_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace onestep {

// An NVTX range of domain "onestep" on the timeline of a profiler such as
// Nsight Systems. The range lasts from construction to destruction. Ranges of a
// thread must nest, and each ends on the thread that began it. Without a
// profiler the cost is one pointer test; in a build without CUDA the class does
// nothing.
class ScopedRange {
 public:
  explicit ScopedRange(absl::string_view name);
  // Names the range after the items [first, first + n): "steps 64..95", or
  // "epoch 3" when n is 1.
  ScopedRange(absl::string_view name, int64_t first, int64_t n);
  ~ScopedRange();
  ScopedRange(const ScopedRange&) = delete;
  ScopedRange& operator=(const ScopedRange&) = delete;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_NVTX_H_
