// SPDX-License-Identifier: Apache-2.0
#include "trainer/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace onestep {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const auto cannot_read = [&path](const char* reason) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot read: ", reason));
  };
  // Not to wait for the writer of a pipe.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return cannot_read(std::strerror(errno));
  struct stat info = {};
  const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  void* data = nullptr;
  if (is_file && info.st_size > 0) {
    data = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  const int error = errno;
  close(fd);
  if (!is_file) return cannot_read("it is not a file");
  if (data == MAP_FAILED) return cannot_read(std::strerror(error));
  return MappedFile(data, info.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace onestep
