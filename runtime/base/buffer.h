// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_BUFFER_H_
#define ONESTEP_RUNTIME_BASE_BUFFER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace onestep {

// The alignment in bytes of every buffer and of every slice of an arena.
inline constexpr int64_t kBufferAlignment = 256;

constexpr int64_t AlignUp(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

// Owned, aligned, zero-filled host memory. Move-only.
class Buffer {
 public:
  Buffer() = default;

  // Returns ResourceExhausted, with the number of bytes requested, when the
  // allocation fails.
  static absl::StatusOr<Buffer> Create(int64_t bytes);

  int64_t bytes() const { return bytes_; }
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  template <typename T>
  T* as() {
    return static_cast<T*>(data_.get());
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> data_;
  int64_t bytes_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_BUFFER_H_
