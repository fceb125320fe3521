// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_SUBPROCESS_H_
#define ONESTEP_TRAINER_MEASURE_SUBPROCESS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace onestep {

// Runs `program`, a path, with these arguments until it ends, and returns what
// it wrote to stdout. What it wrote to stderr comes out on ours.
//
// Its failure becomes ours: the status that its exit code stands for
// (exit_code.h) with the last line of its stderr, which is then not shown.
// Internal when it could not be started or a signal ended it. Cancelled when a
// signal came for us: that was passed on, to what the program had started too,
// and the program has ended.
// REQUIRES: CatchSignals() was called.
absl::StatusOr<std::string> RunProgram(const std::string& program,
                                       const std::vector<std::string>& args);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_SUBPROCESS_H_
