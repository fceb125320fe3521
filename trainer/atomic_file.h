// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_ATOMIC_FILE_H_
#define ONESTEP_TRAINER_ATOMIC_FILE_H_

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace onestep {

// A file that takes the place of `path` in one step, so that who reads it, be
// it after a crash, finds the old one or the new: it is written as
// PATH.tmp.PID, synced and renamed.
// REQUIRES: no other thread of this process writes the same path.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Without a Commit nothing is left.
  ~AtomicFile();

  // What fails here or at the start is said by Commit.
  void Write(std::string_view bytes);
  void Write(const void* data, size_t bytes) {
    Write({static_cast<const char*>(data), bytes});
  }

  // FailedPrecondition "cannot write PATH: <reason>"; the old file is then as
  // it was, unless only the last step, the sync of the folder, failed.
  absl::Status Commit();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  bool Replace();  // else the reason is in errno

  std::string path_, draft_;
  std::unique_ptr<std::FILE, Close> file_;
  int error_ = 0;  // errno of the first failure
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_ATOMIC_FILE_H_
