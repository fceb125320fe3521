// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/buffer.h"

#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/huge_pages.h"

namespace onestep {

namespace {

// Buffers of at least this many bytes are placed on separate huge pages: a
// weight or an arena of this size is read completely in every step.
constexpr int64_t kLarge = 64 << 10;

}  // namespace

void Buffer::Free::operator()(void* p) const { std::free(p); }

absl::StatusOr<Buffer> Buffer::Create(int64_t bytes) {
  Buffer buffer;
  if (bytes < 0 || bytes > INT64_MAX - kBufferAlignment) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory: want ", bytes, " bytes"));
  }
  // At least kBufferAlignment bytes, so that data() of an empty buffer is a
  // valid address.
  int64_t rounded = AlignUp(bytes > 0 ? bytes : 1);
  const bool huge = bytes >= kLarge && bytes <= INT64_MAX - kHugePage;
  if (huge) rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* const p =
      std::aligned_alloc(huge ? kHugePage : kBufferAlignment, rounded);
  if (p == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory: want ", rounded, " bytes, got none"));
  }
  if (huge) PreferHugePages(p, rounded);
  std::memset(p, 0, bytes);
  buffer.data_.reset(p);
  buffer.bytes_ = bytes;
  return buffer;
}

}  // namespace onestep
