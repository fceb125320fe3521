// SPDX-License-Identifier: Apache-2.0
// The folders of --out and --dump-ir.
#ifndef ONESTEP_TRAINER_OUTPUT_DIR_H_
#define ONESTEP_TRAINER_OUTPUT_DIR_H_

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onestep {

// AlreadyExists when `dir` has something in it and `force` is off,
// FailedPrecondition when it is not a folder. Changes nothing.
absl::Status CheckOutputDir(const std::string& dir, bool force);

// Whether a run writes a file of this name to its folder, or a draft of it.
bool IsOfARun(const std::string& name);

// Makes the folder and those around it. FailedPrecondition.
absl::Status MakeFolder(const std::string& dir);

// Makes the folder and those around it, and removes all files of an earlier run
// together, as none of them must be taken for this one's. FailedPrecondition.
absl::Status CreateOutputDir(const std::string& dir);

// Makes the folder of --dump-ir and those around it; "" is none.
// FailedPrecondition.
absl::Status CreateDumpDir(const std::string& dir);

// FailedPrecondition "cannot write PATH: <reason>", also of what is there and
// no regular file.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

// The same by an AtomicFile: who reads it finds the old text or the new.
absl::Status ReplaceTextFile(const std::string& path, absl::string_view text);

// Whether it could: FailedPrecondition as above. Leaves no file behind.
// For what is written only at the end of a long run; "" is none.
absl::Status CheckCanWrite(const std::string& path);

// A text file that is complete up to the last line after every Append. Errors
// as of WriteTextFile.
class LineLog {
 public:
  static absl::StatusOr<LineLog> Create(const std::string& path);
  absl::Status Append(absl::string_view line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_OUTPUT_DIR_H_
