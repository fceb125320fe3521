// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MAPPED_FILE_H_
#define ONESTEP_TRAINER_MAPPED_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace onestep {

// A file's bytes, mapped into memory for reading. Move-only.
class MappedFile {
 public:
  // NotFound "PATH: cannot read: <reason>", also of a folder or a pipe.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other)
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const {
    return {static_cast<const char*>(data_), bytes_};
  }

 private:
  MappedFile(void* data, size_t bytes) : data_(data), bytes_(bytes) {}

  void* data_;  // null: it is empty
  size_t bytes_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MAPPED_FILE_H_
