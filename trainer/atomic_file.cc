// SPDX-License-Identifier: Apache-2.0
#include "trainer/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace onestep {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

// To the disk. Some file systems cannot: EINVAL.
bool Sync(int fd) { return fsync(fd) == 0 || errno == EINVAL; }

// Without it the rename could be lost.
bool SyncFolder(const std::string& folder) {
  const int fd = open(folder.empty() ? "." : folder.c_str(),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const int error = Sync(fd) ? 0 : errno;
  close(fd);
  errno = error;
  return error == 0;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    : path_(path),
      draft_(absl::StrCat(path, ".tmp.", getpid())),
      file_(std::fopen(draft_.c_str(), "we")) {
  if (file_ == nullptr) {
    error_ = errno;
  } else {
    std::setvbuf(file_.get(), nullptr, _IOFBF, kBufferBytes);
  }
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) unlink(draft_.c_str());
}

void AtomicFile::Write(std::string_view bytes) {
  if (bytes.empty()) return;  // its data may be null
  if (error_ == 0 &&
      std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    error_ = errno;
  }
}

bool AtomicFile::Replace() {
  // Some file systems report a failed write only when it is closed.
  if (std::fflush(file_.get()) != 0 || !Sync(fileno(file_.get())) ||
      std::fclose(file_.release()) != 0 ||
      std::rename(draft_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(draft_.c_str());
    errno = error;
    return false;
  }
  return SyncFolder(std::filesystem::path(path_).parent_path().string());
}

absl::Status AtomicFile::Commit() {
  if (error_ == 0 && !Replace()) error_ = errno;
  if (error_ == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", path_, ": ", std::strerror(error_)));
}

}  // namespace onestep
