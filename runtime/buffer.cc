// SPDX-License-Identifier: Apache-2.0
#include "runtime/buffer.h"

#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace onestep {

void Buffer::Free::operator()(void* p) const { std::free(p); }

absl::StatusOr<Buffer> Buffer::Create(int64_t bytes) {
  Buffer buffer;
  if (bytes < 0 || bytes > INT64_MAX - kBufferAlignment) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory: want ", bytes, " bytes"));
  }
  // At least one line, so that data() of an empty buffer is a valid address.
  const int64_t rounded = AlignUp(bytes > 0 ? bytes : 1);
  void* p = std::aligned_alloc(kBufferAlignment, rounded);
  if (p == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory: want ", rounded, " bytes, got none"));
  }
  std::memset(p, 0, rounded);
  buffer.data_.reset(p);
  buffer.bytes_ = bytes;
  return buffer;
}

}  // namespace onestep
