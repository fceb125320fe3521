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
  void* data = MAP_FAILED;
  struct stat info = {};
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, &info) == 0) {
    data = info.st_size == 0 && S_ISREG(info.st_mode)
               ? nullptr
               : mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (data != MAP_FAILED) return MappedFile(data, info.st_size);
  return absl::NotFoundError(
      absl::StrCat(path, ": cannot read: ", std::strerror(error)));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace onestep
