// SPDX-License-Identifier: Apache-2.0
#include "trainer/console.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace onestep {

void Console::Print(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() &&
      error_ == 0) {
    error_ = errno;
  }
}

void Console::Flush() {
  if (std::fflush(stdout) != 0 && error_ == 0) error_ = errno;
}

void Console::Notice(absl::string_view message) {
  const std::string line = absl::StrCat(
      "trainer: ", absl::StrReplaceAll(message, {{"\n", " "}}), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

absl::Status Console::Finish() {
  Flush();
  if (error_ == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("stdout: cannot write: ", std::strerror(error_)));
}

}  // namespace onestep
