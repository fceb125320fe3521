// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_CONSOLE_H_
#define ONESTEP_TRAINER_CONSOLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace onestep {

// The program's two streams: results go to stdout, what a person should know
// beside them to stderr. A write that fails is remembered, not fatal, so that
// a run whose reader went away still saves its model.
class Console {
 public:
  void Print(absl::string_view text);
  void Flush();
  // "trainer: <message>" on stderr, all in one line.
  static void Notice(absl::string_view message);

  // Flushes. FailedPrecondition with the first reason when a write failed.
  absl::Status Finish();

 private:
  int error_ = 0;  // errno of the first failure
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_CONSOLE_H_
