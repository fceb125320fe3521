// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace onestep {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(SearchProgressTest, SaysALineForEachEpochWhereThereIsNoTerminal) {
  SearchOutcome outcome;
  outcome.results.resize(3);
  for (int i = 0; i < 3; ++i) {
    outcome.results[i].trial.index = i;
    outcome.results[i].trial.model.widths = {4, 3};
  }
  outcome.results[0].status = TrialStatus::kTraining;
  outcome.results[1].status = TrialStatus::kTraining;

  testing::internal::CaptureStderr();
  SearchProgress progress(/*waves=*/2, /*epochs=*/5);
  progress.Update(outcome, 1, 10);
  outcome.results[0].status = TrialStatus::kDiverged;
  outcome.results[1].epochs.push_back(
      {.validation_loss = 0.5, .validation_accuracy = 0.25});
  outcome.best = 1;
  outcome.epochs.push_back({1, 1, 2, 1.25, 0.5});
  progress.EndEpoch(outcome);
  progress.Clear();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, MatchesRegex("trainer: [^\n]*\n"));
  EXPECT_THAT(text,
              ContainsRegex("wave 1/2, epoch 1/5: 2 trials in 1.75 s, best "
                            "trial 1, validation loss 0.5, accuracy 25.00 %, "
                            "ETA [0-9:]+"));
}

// What `draw` writes to stderr where that is a terminal of 40 lines.
template <typename Draw>
std::string OnATerminal(const Draw& draw) {
  winsize size = {.ws_row = 40, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
  int ours = -1, terminal = -1;
  EXPECT_EQ(openpty(&ours, &terminal, nullptr, nullptr, &size), 0);
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(terminal, STDERR_FILENO);
  draw();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  close(terminal);
  std::string text(4096, '\0');
  text.resize(std::max<ssize_t>(0, read(ours, text.data(), text.size())));
  close(ours);
  return text;
}

TEST(SearchProgressTest, DrawsTheBestEightOnATerminal) {
  SearchOutcome outcome;
  outcome.by_accuracy = true;
  for (int i = 0; i < 12; ++i) {
    TrialResult& result = outcome.results.emplace_back();
    result.trial.index = i;
    result.trial.model.widths = {4, 3};
    result.status = TrialStatus::kTraining;
    result.epochs = {
        {.validation_loss = 100.0 + i, .validation_accuracy = i / 16.0}};
  }
  outcome.results[0].status = TrialStatus::kDiverged;
  outcome.results[0].epochs.clear();
  outcome.best = 11;
  outcome.epochs = {{1, 1, 12, 1, 1}};
  const std::string text = OnATerminal([&outcome] {
    SearchProgress progress(/*waves=*/2, /*epochs=*/5);
    progress.EndEpoch(outcome);
    progress.Update(outcome, 5, 10);
  });
  EXPECT_THAT(text, HasSubstr("   11       1     0              111   68.75 %  "
                              "training after epoch 1"));
  EXPECT_THAT(text, HasSubstr("    4       1     0"));  // the eighth
  EXPECT_THAT(text, Not(HasSubstr("    3       1     0")));
  EXPECT_THAT(text, HasSubstr("wave 1/2  epoch 2/5  50 %"));
}

}  // namespace
}  // namespace onestep
