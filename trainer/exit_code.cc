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
    case absl::StatusCode::kAborted:
      return kExitGate;
    case absl::StatusCode::kCancelled:
      return kExitSignal + signal;
    default:
      return kExitInternal;
  }
}

absl::StatusCode StatusCodeOf(int exit_code) {
  switch (exit_code) {
    case kExitOk:
      return absl::StatusCode::kOk;
    case kExitUsage:
      return absl::StatusCode::kInvalidArgument;
    case kExitData:
      return absl::StatusCode::kNotFound;
    case kExitDiverged:
      return absl::StatusCode::kOutOfRange;
    case kExitUnavailable:
      return absl::StatusCode::kUnavailable;
    case kExitOutput:
      return absl::StatusCode::kFailedPrecondition;
    case kExitGate:
      return absl::StatusCode::kAborted;
    default:
      return absl::StatusCode::kInternal;
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
      {kExitGate, "gate: slower than bench --gate allows"},
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
