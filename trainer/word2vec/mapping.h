// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_MAPPING_H_
#define ONESTEP_TRAINER_WORD2VEC_MAPPING_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace onestep {

// Pages of memory, returned with the object. Move-only.
class Mapping {
 public:
  // The bytes of a regular file, read-only. A file that becomes shorter while
  // it is mapped ends the process (SIGBUS). NotFound names the path.
  static absl::StatusOr<Mapping> OfFile(const std::string& path);
  // Zeros, of which only what is touched takes memory. ResourceExhausted.
  static absl::StatusOr<Mapping> OfZeros(int64_t bytes);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  const char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  std::string_view text() const { return {data_, static_cast<size_t>(bytes_)}; }
  // REQUIRES: it is not a file's.
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

  // Returns the pages wholly inside [begin, end) to the system: a file's come
  // back when they are read again.
  void Release(int64_t begin, int64_t end);
  // Keeps the first `bytes` and returns the pages behind them.
  void Truncate(int64_t bytes);

 private:
  Mapping(char* data, int64_t bytes) : data_(data), bytes_(bytes) {}

  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_MAPPING_H_
