// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/asha.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace onestep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Trials with these validation losses after their one epoch.
std::vector<TrialResult> WithLosses(const std::vector<double>& losses) {
  std::vector<TrialResult> results(losses.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    results[i].trial.index = static_cast<int64_t>(i);
    results[i].epochs = {{.validation_loss = losses[i]}};
  }
  return results;
}

std::vector<bool> GoOn(const AshaOptions& options,
                       const std::vector<TrialResult>& results) {
  std::vector<bool> go_on;
  for (size_t i = 0; i < results.size(); ++i) {
    go_on.push_back(GoesOn(options, results, static_cast<int64_t>(i), 1));
  }
  return go_on;
}

TEST(AshaTest, RungsAreAtPowersOfEta) {
  std::vector<int64_t> rungs;
  for (int64_t epoch = 1; epoch <= 60; ++epoch) {
    if (IsRung({.eta = 3, .min_epochs = 2}, epoch)) rungs.push_back(epoch);
  }
  EXPECT_EQ(rungs, (std::vector<int64_t>{2, 6, 18, 54}));
}

TEST(AshaTest, ATrialGoesOnAmongTheBestThirdOfThoseUpToIt) {
  // Of 1, 2, 3, 4 and 5 trials 1, 1, 1, 2 and 2 go on.
  EXPECT_EQ(GoOn({}, WithLosses({3, 4, 2, 2.5, 2.7})),
            (std::vector<bool>{true, false, true, true, false}));
}

TEST(AshaTest, LaterTrialsChangeNothingForEarlierOnes) {
  std::vector<TrialResult> results = WithLosses({3, 4, 2});
  const std::vector<bool> before = GoOn({}, results);
  results = WithLosses({3, 4, 2, 1, 1, 1});
  std::vector<bool> after = GoOn({}, results);
  after.resize(3);
  EXPECT_EQ(before, after);
}

TEST(AshaTest, OfEqualsTheLowerIndexIsBetter) {
  EXPECT_EQ(GoOn({.eta = 2}, WithLosses({1, 1, 1})),
            (std::vector<bool>{true, false, false}));
}

TEST(AshaTest, ATrialThatDivergedOnTheWayCountsAsTheWorst) {
  std::vector<TrialResult> results = WithLosses({1, 5, 6, 2});
  EXPECT_FALSE(GoesOn({.eta = 4}, results, 3, 1));  // 1 of 4 goes on
  results.push_back(results[3]);
  results[4].trial.index = 4;
  results[1] = {results[1].trial, TrialStatus::kDiverged, {}, 7};
  results[3].epochs[0].validation_loss = kInfinity;
  EXPECT_TRUE(GoesOn({.eta = 4}, results, 4, 1));  // 2 of 5 go on
}

TEST(AshaTest, OnlyWhoCameToARungCountsThere) {
  std::vector<TrialResult> results(3);
  const auto done = [&results](size_t i, std::vector<TrialEpoch> epochs) {
    results[i].trial.index = static_cast<int64_t>(i);
    results[i].epochs = std::move(epochs);
  };
  const TrialEpoch good = {.validation_loss = 1}, bad = {.validation_loss = 2};
  done(0, {good, good, good});
  done(1, {bad});  // stopped at the rung before
  done(2, {bad, bad, bad});
  EXPECT_FALSE(GoesOn({.eta = 3}, results, 2, 3));  // 1 of 2 goes on
  results[1].diverged_step = 9;  // behind the rung at 1, before that at 3
  EXPECT_FALSE(GoesOn({.eta = 3}, results, 2, 3));
  EXPECT_TRUE(
      GoesOn({.eta = 2, .min_epochs = 1}, WithLosses({2, 3, 2.5}), 2, 1));
}

TEST(AshaTest, AccuracyDecidesWhereItIsTheMetric) {
  std::vector<TrialResult> results = WithLosses({1, 2, 3});
  results[2].epochs[0].validation_accuracy = 0.9;
  EXPECT_FALSE(GoesOn({}, results, 2, 1));
  EXPECT_TRUE(GoesOn({.metric = SearchMetric::kAccuracy}, results, 2, 1));
}

}  // namespace
}  // namespace onestep
