// SPDX-License-Identifier: Apache-2.0
#include "trainer/exit_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onestep {
namespace {

TEST(ExitCodeTest, EveryStatusCodeHasItsDocumentedExitCode) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::UnknownError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::OutOfRangeError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), 6);
  EXPECT_EQ(ExitCodeOf(absl::AlreadyExistsError("")), 6);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), 6);
  EXPECT_EQ(ExitCodeOf(absl::AbortedError("")), 7);
}

TEST(ExitCodeTest, TheStatusOfAnExitCodeHasThatExitCode) {
  for (int code = kExitOk; code <= kExitGate; ++code) {
    EXPECT_EQ(ExitCodeOf(absl::Status(StatusCodeOf(code), "")), code);
  }
  EXPECT_EQ(StatusCodeOf(127), absl::StatusCode::kInternal);
}

TEST(ExitCodeTest, AStopBySignalIs128PlusItsNumber) {
  EXPECT_EQ(ExitCodeOf(absl::CancelledError(""), SIGINT), 130);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError(""), SIGTERM), 143);
}

TEST(ExitCodeTest, HelpHasALineForEachCode) {
  for (const char* line :
       {"    0  ok\n", "    1  ", "    2  ", "    3  ", "    4  ", "    5  ",
        "    6  ", "    7  ", "  130  ", "  143  "}) {
    EXPECT_THAT(ExitCodeHelp(), testing::HasSubstr(line));
  }
}

}  // namespace
}  // namespace onestep
