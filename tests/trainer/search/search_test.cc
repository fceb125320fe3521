// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "trainer/search/bundle.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Loss of trial i after epoch e: i + 1 / e; its one weight is 100 i + e.
class FakeEngine : public TrialEngine {
 public:
  absl::Status Add(const Trial& trial) override {
    EXPECT_TRUE(running.insert(trial.index).second);
    added.push_back(trial.index);
    std::vector<Tensor>& params = params_[trial.index];
    params.push_back({"b1", {1}, *Buffer::Create(sizeof(float))});
    return absl::OkStatus();
  }
  void Drop(int64_t index) override {
    EXPECT_EQ(running.erase(index), 1u);
    params_.erase(index);
  }
  absl::StatusOr<std::vector<EpochOutcome>> RunEpoch(
      int64_t epoch, const Poll& poll) override {
    std::vector<EpochOutcome> outcomes;
    for (const int64_t index : running) {
      if (!poll(0, 1)) return absl::CancelledError("stopped");
      const bool diverges = diverge_in[index] == epoch;
      const double loss = losses.contains(index)
                              ? losses[index]
                              : static_cast<double>(index) + 1.0 / epoch;
      outcomes.push_back(
          {index, {.validation_loss = loss}, diverges ? 10 * epoch : 0});
      *params_[index][0].data.as<float>() =
          static_cast<float>(100 * index + epoch);
    }
    waves.push_back({running.begin(), running.end()});
    return outcomes;
  }
  std::vector<Tensor>& Params(int64_t index) override {
    EXPECT_TRUE(running.contains(index));
    return params_.at(index);
  }
  std::vector<GroupReport> Groups() const override {
    GroupReport group;
    group.kind = group.name = KindOf(Trial());
    group.trials = static_cast<int64_t>(running.size());
    return {group};
  }
  double train_seconds() const override { return 2; }
  double evaluate_seconds() const override { return 1; }

  std::set<int64_t> running;
  std::vector<int64_t> added;
  std::vector<std::vector<int64_t>> waves;  // of each epoch
  std::map<int64_t, int64_t> diverge_in;    // trial, epoch
  std::map<int64_t, double> losses;

 private:
  std::map<int64_t, std::vector<Tensor>> params_;
};

// Interrupts after so many epochs.
class CountingWatcher : public SearchWatcher {
 public:
  explicit CountingWatcher(int64_t epochs = 1000) : left_(epochs) {}
  bool OnSteps(const SearchOutcome&, int64_t, int64_t) override {
    return left_ > 0;
  }
  absl::Status OnEpoch(const SearchOutcome& so_far,
                       const KeptModels& models) override {
    --left_;
    EXPECT_EQ(models.best().trial, so_far.best);
    return absl::OkStatus();
  }

 private:
  int64_t left_;
};

SearchOutcome Trials(int64_t count) {
  SearchOutcome outcome;
  outcome.results.resize(count);
  for (int64_t i = 0; i < count; ++i) {
    outcome.results[i].trial.index = i;
    outcome.results[i].trial.seed = i;
  }
  return outcome;
}

std::vector<TrialStatus> StatusesOf(const SearchOutcome& outcome) {
  std::vector<TrialStatus> statuses;
  for (const TrialResult& result : outcome.results) {
    statuses.push_back(result.status);
  }
  return statuses;
}

float WeightOf(const KeptModel& model) {
  return *model.params[0].data.as<float>();
}

class SearchTest : public testing::Test {
 protected:
  SearchOutcome Run(SearchOutcome earlier, SearchWatcher& watcher) {
    auto outcome =
        RunTrials(options_, std::move(earlier), engine_, watcher, models_);
    EXPECT_OK(outcome);
    EXPECT_THAT(engine_.running, IsEmpty());
    return outcome.ok() ? *std::move(outcome) : SearchOutcome();
  }
  SearchOutcome Run(int64_t trials) {
    CountingWatcher watcher;
    return Run(Trials(trials), watcher);
  }

  SearchOptions options_ = {.epochs = 3, .parallel = 2, .asha = {}};
  FakeEngine engine_;
  KeptModels models_;
};

TEST_F(SearchTest, TrialsTrainInWavesAndAllFinish) {
  const SearchOutcome outcome = Run(3);
  EXPECT_THAT(engine_.waves, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1),
                                         ElementsAre(0, 1), ElementsAre(2),
                                         ElementsAre(2), ElementsAre(2)));
  EXPECT_THAT(StatusesOf(outcome), testing::Each(TrialStatus::kFinished));
  EXPECT_EQ(outcome.results[2].epochs[1].validation_loss, 2.5);
  EXPECT_EQ(outcome.ended, "");
  EXPECT_THAT(outcome.varied, ElementsAre("seed"));
  ASSERT_EQ(outcome.epochs.size(), 6u);
  EXPECT_EQ(outcome.epochs[3].wave, 2);
  EXPECT_EQ(outcome.epochs[3].epoch, 1);
  EXPECT_EQ(outcome.epochs[3].trials, 1);
  EXPECT_EQ(outcome.epochs[3].train_seconds, 2);
  ASSERT_EQ(outcome.groups.size(), 1u);
  EXPECT_EQ(outcome.groups[0].trials, 3);
}

TEST_F(SearchTest, TheBestTrialsWeightsAreThoseOfItsLastEpoch) {
  engine_.losses = {{1, 0.1}};
  const SearchOutcome outcome = Run(4);
  EXPECT_EQ(outcome.best, 1);
  EXPECT_EQ(models_.best().trial, 1);
  EXPECT_EQ(WeightOf(models_.best()), 103);
}

TEST_F(SearchTest, AnInterruptIsHeardWhileTrialsAreAdded) {
  options_.parallel = 3;
  CountingWatcher watcher(0);
  const SearchOutcome outcome = Run(Trials(3), watcher);
  EXPECT_THAT(engine_.added, ElementsAre(0));
  EXPECT_THAT(engine_.waves, IsEmpty());
  EXPECT_EQ(outcome.ended, "interrupted");
}

TEST_F(SearchTest, SaysWhatTheBestIsBestIn) {
  options_.metric = SearchMetric::kAccuracy;
  EXPECT_TRUE(Run(1).by_accuracy);
}

TEST_F(SearchTest, ADivergedTrialIsDroppedAndTheOthersGoOn) {
  engine_.diverge_in = {{0, 2}};
  const SearchOutcome outcome = Run(2);
  EXPECT_THAT(engine_.waves, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1),
                                         ElementsAre(1)));
  EXPECT_THAT(StatusesOf(outcome),
              ElementsAre(TrialStatus::kDiverged, TrialStatus::kFinished));
  EXPECT_EQ(outcome.results[0].diverged_step, 20);
  EXPECT_EQ(outcome.results[0].epochs.size(), 1u);
  EXPECT_EQ(outcome.best, 1);
}

TEST_F(SearchTest, WhereAllDivergeThereIsNoBest) {
  engine_.diverge_in = {{0, 1}, {1, 2}, {2, 1}};
  const SearchOutcome outcome = Run(3);
  EXPECT_THAT(StatusesOf(outcome), testing::Each(TrialStatus::kDiverged));
  EXPECT_EQ(outcome.best, -1);
  EXPECT_EQ(models_.best().trial, -1);
}

TEST_F(SearchTest, ALossThatIsNotFiniteIsNeverTheBest) {
  engine_.losses = {{0, std::nan("")}};
  EXPECT_EQ(Run(2).best, 1);
}

TEST_F(SearchTest, AshaStopsTheSameTrialsWhateverTheWaves) {
  options_.epochs = 4;
  options_.asha = AshaOptions{.eta = 2};
  engine_.losses = {{0, 5}, {1, 7}, {2, 4}, {3, 6}, {4, 3}};
  options_.parallel = 1;
  const std::vector<TrialStatus> one = StatusesOf(Run(5));
  options_.parallel = 5;
  EXPECT_EQ(StatusesOf(Run(5)), one);
  EXPECT_THAT(one, ElementsAre(TrialStatus::kFinished, TrialStatus::kStopped,
                               TrialStatus::kFinished, TrialStatus::kStopped,
                               TrialStatus::kFinished));
}

TEST_F(SearchTest, AnInterruptKeepsTheBestInTrainingAndTheBestThatEnded) {
  engine_.losses = {{0, 9}, {1, 8}, {2, 7}};
  CountingWatcher watcher(5);  // the second wave's second epoch
  const SearchOutcome outcome = Run(Trials(5), watcher);
  EXPECT_EQ(outcome.ended, "interrupted");
  EXPECT_THAT(StatusesOf(outcome),
              ElementsAre(TrialStatus::kFinished, TrialStatus::kFinished,
                          TrialStatus::kTraining, TrialStatus::kTraining,
                          TrialStatus::kWaiting));
  EXPECT_EQ(outcome.best, 3);  // 3.5 after epoch 2
  EXPECT_EQ(WeightOf(models_.best()), 302);
  EXPECT_EQ(models_.ended.trial, 1);
  EXPECT_EQ(WeightOf(models_.ended), 103);
}

TEST_F(SearchTest, AResumedSearchTrainsOnlyWhatHadNotEnded) {
  engine_.losses = {{1, 0.1}};
  engine_.diverge_in = {{0, 1}};
  CountingWatcher watcher(4);
  const SearchOutcome first = Run(Trials(5), watcher);
  const std::vector<int64_t> before = engine_.added;
  EXPECT_THAT(before, ElementsAre(0, 1, 2, 3));
  engine_.added.clear();
  CountingWatcher to_the_end;
  const SearchOutcome second = Run(first, to_the_end);
  EXPECT_THAT(engine_.added, ElementsAre(2, 3, 4));
  EXPECT_EQ(second.resumed, 2);
  EXPECT_EQ(second.best, 1);
  EXPECT_EQ(WeightOf(models_.best()), 103);
  EXPECT_EQ(second.results[2].epochs.size(), 3u);
}

TEST_F(SearchTest, AResumedSearchGoesOnWithWavesGroupsAndSeconds) {
  CountingWatcher watcher(4);  // the second wave's first epoch
  SearchOutcome first = Run(Trials(5), watcher);
  ASSERT_EQ(first.epochs.back().wave, 2);
  EXPECT_EQ(first.groups[0].trials, 4);
  first.seconds = 1000;
  CountingWatcher to_the_end;
  const SearchOutcome second = Run(first, to_the_end);
  ASSERT_EQ(second.epochs.size(), 4u + 6u);
  EXPECT_EQ(second.epochs[3].wave, 2);
  EXPECT_EQ(second.epochs[4].wave, 3);
  EXPECT_EQ(second.epochs[4].epoch, 1);
  EXPECT_EQ(second.epochs.back().wave, 4);
  ASSERT_EQ(second.groups.size(), 1u);
  EXPECT_EQ(second.groups[0].trials, 5);
  EXPECT_GE(second.seconds, 1000);
  EXPECT_EQ(second.ended, "");
  const SearchOutcome third = Run(second, to_the_end);
  EXPECT_EQ(third.epochs.size(), second.epochs.size());
  EXPECT_EQ(third.groups.size(), 1u);
}

TEST_F(SearchTest, AnAshaSearchThatIsResumedEndsAsOneThatWasNot) {
  options_ = {.epochs = 9, .parallel = 4, .asha = AshaOptions{.eta = 3}};
  engine_.losses = {{0, 5}, {1, 7}, {2, 4}, {3, 6}, {4, 3}, {5, 2}};
  const std::vector<TrialStatus> whole = StatusesOf(Run(6));
  for (int64_t epochs = 1; epochs < 15; ++epochs) {
    models_ = {};
    CountingWatcher watcher(epochs), to_the_end;
    const SearchOutcome first = Run(Trials(6), watcher);
    EXPECT_EQ(StatusesOf(Run(first, to_the_end)), whole) << epochs;
  }
}

TEST_F(SearchTest, WhenTheTimeIsOverNothingMoreIsTrained) {
  options_.time_limit = 1e-9;
  const SearchOutcome outcome = Run(2);
  EXPECT_EQ(outcome.ended, "time limit");
  EXPECT_THAT(engine_.waves, IsEmpty());
  EXPECT_THAT(StatusesOf(outcome), testing::Each(TrialStatus::kWaiting));
}

TEST_F(SearchTest, AnErrorOfTheWatcherEndsTheSearch) {
  struct Failing : CountingWatcher {
    absl::Status OnEpoch(const SearchOutcome&, const KeptModels&) override {
      return absl::FailedPreconditionError("disk full");
    }
  } watcher;
  EXPECT_THAT(RunTrials(options_, Trials(2), engine_, watcher, models_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::HasSubstr("disk full")));
}

}  // namespace
}  // namespace onestep
