// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace onestep {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

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
  EXPECT_THAT(text, HasSubstr("wave 1/2, epoch 1/5: 2 trials in 1.75 s, best "
                              "trial 1, validation loss 0.5, accuracy 25.00 %, "
                              "ETA 0:00"));
}

}  // namespace
}  // namespace onestep
