// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "trainer/file_kind.h"

namespace onestep {
namespace {

int64_t PageUp(int64_t bytes) {
  static const int64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

}  // namespace

absl::StatusOr<Mapping> Mapping::OfFile(const std::string& path) {
  const auto unreadable = [&path](absl::string_view reason) {
    return absl::NotFoundError(absl::StrCat(path, ": ", reason));
  };
  const std::string other = NoRegularFile(path);
  if (!other.empty()) return unreadable(other);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  void* data = nullptr;
  if (fd < 0 || fstat(fd, &info) != 0) data = MAP_FAILED;
  if (data == nullptr && info.st_size > 0) {
    data = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (data == MAP_FAILED) {
    return unreadable(absl::StrCat("cannot read: ", std::strerror(error)));
  }
  return Mapping(static_cast<char*>(data), info.st_size);
}

absl::StatusOr<Mapping> Mapping::OfZeros(int64_t bytes) {
  if (bytes == 0) return Mapping();
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory: want ", bytes, " bytes, got none"));
  }
  return Mapping(static_cast<char*>(data), bytes);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() { Truncate(0); }

void Mapping::Release(int64_t begin, int64_t end) {
  begin = PageUp(begin);
  end = end == bytes_ ? PageUp(end) : PageUp(end + 1 - PageUp(1));
  if (begin < end) (void)madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

void Mapping::Truncate(int64_t bytes) {
  const int64_t kept = PageUp(bytes), all = PageUp(bytes_);
  if (kept < all) munmap(data_ + kept, all - kept);
  if (kept == 0) data_ = nullptr;
  bytes_ = bytes;
}

}  // namespace onestep
