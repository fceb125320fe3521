// SPDX-License-Identifier: Apache-2.0
#include "trainer/exit_code.h"

#include "absl/strings/str_format.h"

namespace onestep {

int ExitCodeOf(const absl::Status& status, int signal) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
      return kExitData;
    case absl::StatusCode::kOutOfRange:
      return kExitDiverged;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
      return kExitUnavailable;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
      return kExitOutput;
    case absl::StatusCode::kCancelled:
      return kExitSignal + signal;
    default:
      return kExitInternal;
  }
}

std::string ExitCodeHelp() {
  constexpr struct {
    int code;
    const char* meaning;
  } kRows[] = {
      {kExitOk, "ok"},
      {kExitInternal, "internal error"},
      {kExitUsage, "usage: a wrong flag or value"},
      {kExitData, "data or model file missing or corrupt"},
      {kExitDiverged, "diverged: the loss or a weight was not finite"},
      {kExitUnavailable, "device, memory or lowering not available here"},
      {kExitOutput, "output cannot be written"},
      {kExitSignal + SIGINT, "interrupted (SIGINT)"},
      {kExitSignal + SIGTERM, "terminated (SIGTERM)"},
  };
  std::string text = "Exit codes:\n";
  for (const auto& row : kRows) {
    absl::StrAppendFormat(&text, "  %3d  %s\n", row.code, row.meaning);
  }
  return text;
}

}  // namespace onestep
