// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_EXIT_CODE_H_
#define ONESTEP_TRAINER_EXIT_CODE_H_

#include <csignal>
#include <string>

#include "absl/status/status.h"

namespace onestep {

// What the program's exit code says. Scripts rely on the values: they must
// not change.
enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitUsage = 2,
  kExitData = 3,
  kExitDiverged = 4,
  kExitUnavailable = 5,
  kExitOutput = 6,
  kExitGate = 7,
  kExitSignal = 128,  // plus the signal's number
};

// InvalidArgument -> usage; NotFound, DataLoss -> data; OutOfRange ->
// diverged; Unavailable, Unimplemented, ResourceExhausted -> unavailable;
// FailedPrecondition, AlreadyExists, PermissionDenied -> output; Aborted ->
// gate; Cancelled -> 128 + `signal`; any other error -> internal.
int ExitCodeOf(const absl::Status& status, int signal = SIGINT);

// The first of these that has this exit code; Internal for other programs'.
absl::StatusCode StatusCodeOf(int exit_code);

// The table for --help, a code a line.
std::string ExitCodeHelp();

}  // namespace onestep

#endif  // ONESTEP_TRAINER_EXIT_CODE_H_
