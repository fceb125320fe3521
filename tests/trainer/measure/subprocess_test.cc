// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "tests/status_matchers.h"
#include "trainer/interrupt.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

class SubprocessTest : public testing::Test {
 protected:
  void SetUp() override { CatchSignals(); }

  // Runs a line of shell; notes its stderr.
  absl::StatusOr<std::string> Run(const std::string& line) {
    testing::internal::CaptureStderr();
    absl::StatusOr<std::string> out = RunProgram("/bin/sh", {"-c", line});
    err_ = testing::internal::GetCapturedStderr();
    return out;
  }

  std::string err_;
};

TEST_F(SubprocessTest, GivesStdoutAndPassesStderrOn) {
  ASSERT_OK_AND_ASSIGN(const std::string out,
                       Run("echo one; echo a word >&2; printf two"));
  EXPECT_EQ(out, "one\ntwo");
  EXPECT_EQ(err_, "a word\n");
}

TEST_F(SubprocessTest, TakesMoreThanAPipeHolds) {
  ASSERT_OK_AND_ASSIGN(
      const std::string out,
      Run("head -c 300000 /dev/zero >&2; head -c 200000 /dev/zero"));
  EXPECT_EQ(out.size(), 200000u);
  EXPECT_EQ(err_.size(), 300000u);
}

TEST_F(SubprocessTest, WaitsForTheProgramAlone) {
  ASSERT_OK_AND_ASSIGN(const std::string out, Run("sleep 60 & echo $!"));
  const pid_t left = std::stoi(out);
  EXPECT_EQ(kill(left, SIGKILL), 0) << "we waited for it";
}

TEST_F(SubprocessTest, AFailureIsOursWithItsMessage) {
  EXPECT_THAT(
      Run("echo a note >&2; echo 'trainer: --batch: want 1' >&2; exit 2"),
      StatusIs(StatusCode::kInvalidArgument, "--batch: want 1"));
  EXPECT_EQ(err_, "a note\n");
  EXPECT_THAT(Run("exit 5"),
              StatusIs(StatusCode::kUnavailable, "/bin/sh: no message"));
}

TEST_F(SubprocessTest, ASignalThatEndsItIsNamed) {
  EXPECT_THAT(Run("echo last words >&2; kill -SEGV $$"),
              StatusIs(StatusCode::kInternal, HasSubstr("ended by signal 11")));
  EXPECT_EQ(err_, "last words\n");
}

TEST_F(SubprocessTest, AProgramThatIsNotThereIsSaid) {
  EXPECT_THAT(RunProgram("/nonexistent", {}),
              StatusIs(StatusCode::kInternal, HasSubstr("/nonexistent: No ")));
}

}  // namespace
}  // namespace onestep
