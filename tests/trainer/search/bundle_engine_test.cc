// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/bundle_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/data/nonzeros.h"
#include "trainer/data/random.h"
#include "trainer/data/random_rows.h"
#include "trainer/evaluate.h"
#include "trainer/train_loop.h"

namespace onestep {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kTrainRows = 203, kRows = kTrainRows + 1030;
constexpr int64_t kEpochs = 3;

// Bars at places that tell the class, a third of the pixels not zero.
const Dataset& Data() {
  static const Dataset data = [] {
    Dataset data;
    data.rows = kRows;
    data.image_rows = 5;
    data.image_cols = 6;
    data.features = 30;
    data.classes = 4;
    Random random(5);
    for (int64_t row = 0; row < kRows; ++row) {
      data.labels.push_back(static_cast<int32_t>(random.Below(4)));
      for (int64_t i = 0; i < data.features; ++i) {
        const bool bar = i / 8 == data.labels.back() || random.Below(8) == 0;
        data.images.push_back(bar ? 1 + random.Below(255) : 0);
      }
    }
    return data;
  }();
  return data;
}

EngineOptions Options(Grouping grouping, InputMode input, int workers) {
  EngineOptions options;
  options.workers = workers;
  options.grouping = grouping;
  options.input = input;
  options.epochs = kEpochs;
  options.lr_schedule = ScheduleKind::kCosine;
  options.warmup = 3;
  options.shuffle_seed = 77;
  return options;
}

Trial TrialOf(int64_t index, OptimizerKind kind, double lr, float momentum,
              float weight_decay) {
  Trial trial;
  trial.index = index;
  trial.model.widths = {30, 9, 4};
  trial.optimizer = {kind, momentum, false, weight_decay};
  trial.lr = lr;
  trial.batch = 8;  // 203 rows: 25 whole batches and a tail of 3
  trial.seed = 10 + index;
  return trial;
}

// Five of one kind that differ in all that may differ within it.
std::vector<Trial> Five(OptimizerKind kind) {
  const double scale =
      kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW ? 0.05 : 1;
  const bool decays = kind != OptimizerKind::kSgd;
  std::vector<Trial> trials;
  for (int64_t i = 0; i < 5; ++i) {
    trials.push_back(TrialOf(i, kind,
                             scale * std::pow(0.4, static_cast<double>(i)),
                             0.5f + 0.1f * static_cast<float>(i),
                             decays ? 0.01f * static_cast<float>(i) : 0));
  }
  return trials;
}

// What a trial comes to when it is trained by itself.
struct Solo {
  std::vector<TrialEpoch> epochs;
  std::vector<Tensor> params;
};

std::unique_ptr<Solo> TrainAlone(const Trial& trial, bool sparse,
                                 int64_t epochs = kEpochs) {
  const EngineOptions options = Options(Grouping::kLoop, InputMode::kDense, 1);
  Config config;
  config.model = trial.model;
  config.optimizer = trial.optimizer;
  config.lr_schedule = options.lr_schedule;
  config.warmup = options.warmup;
  config.lr = trial.lr;
  config.batch = trial.batch;
  config.epochs = epochs;
  config.seed = options.shuffle_seed;
  config.compile.dispatch = Dispatch::kSingle;
  config.compile.kernels = Kernels::kLoops;
  if (sparse) config.compile.sparse = {CountNonzeros(Data())};
  auto loop = TrainLoop::Create(config, Data(), kTrainRows);
  EXPECT_OK(loop.status());
  auto solo = std::make_unique<Solo>();
  auto weights = InitParams(trial.model, options.init, trial.seed);
  EXPECT_OK(weights.status());
  for (size_t i = 0; i < weights->size(); ++i) {
    Buffer& data = (*loop)->params()[i].data;
    std::memcpy(data.data(), (*weights)[i].data.data(), data.bytes());
  }
  auto evaluator =
      Evaluator::Create(config.model, config.compile, Data(), (*loop)->params(),
                        {kTrainRows, kRows - kTrainRows, false});
  EXPECT_OK(evaluator.status());
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    const auto trained =
        (*loop)->RunEpoch(epoch, [](int64_t, double) { return true; });
    EXPECT_OK(trained.status());
    const auto evaluated = (*evaluator)->Run();
    EXPECT_OK(evaluated.status());
    solo->epochs.push_back({trained->loss, trained->train_accuracy,
                            evaluated->loss, evaluated->accuracy});
  }
  solo->params = std::move((*loop)->params());
  return solo;
}

bool Continue(int64_t, int64_t) { return true; }

std::unique_ptr<TrialEngine> EngineFor(const EngineOptions& options,
                                       const std::vector<Trial>& trials) {
  auto engine = CreateBundleEngine(options, Data(), kTrainRows, kRows);
  EXPECT_OK(engine.status());
  for (const Trial& trial : trials) EXPECT_OK((*engine)->Add(trial));
  return *std::move(engine);
}

void ExpectLikeAlone(const EpochOutcome& outcome, int64_t epoch,
                     const Solo& solo) {
  SCOPED_TRACE(testing::Message()
               << "trial " << outcome.index << ", epoch " << epoch);
  EXPECT_EQ(outcome.diverged_step, 0);
  const TrialEpoch& want = solo.epochs[epoch - 1];
  EXPECT_EQ(outcome.epoch.loss, want.loss);
  EXPECT_EQ(outcome.epoch.train_accuracy, want.train_accuracy);
  EXPECT_EQ(outcome.epoch.validation_loss, want.validation_loss);
  EXPECT_EQ(outcome.epoch.validation_accuracy, want.validation_accuracy);
}

void ExpectSameBits(const std::vector<Tensor>& got,
                    const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(std::memcmp(got[i].data.data(), want[i].data.data(),
                          want[i].data.bytes()),
              0)
        << want[i].name;
  }
}

// All epochs of these trials, each like its run alone.
void ExpectAllLikeAlone(const EngineOptions& options,
                        const std::vector<Trial>& trials) {
  const std::unique_ptr<TrialEngine> engine = EngineFor(options, trials);
  std::map<int64_t, std::unique_ptr<Solo>> alone;
  for (const Trial& trial : trials) {
    alone[trial.index] = TrainAlone(trial, options.input == InputMode::kSparse);
  }
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    ASSERT_OK_AND_ASSIGN(const std::vector<EpochOutcome> outcomes,
                         engine->RunEpoch(epoch, Continue));
    ASSERT_EQ(outcomes.size(), trials.size());
    int64_t last_index = -1;
    for (const EpochOutcome& outcome : outcomes) {
      EXPECT_GT(outcome.index, last_index);
      last_index = outcome.index;
      ExpectLikeAlone(outcome, epoch, *alone.at(outcome.index));
    }
  }
  for (const auto& [index, solo] : alone) {
    ExpectSameBits(engine->Params(index), solo->params);
  }
}

class BundleEngineTest : public testing::TestWithParam<Grouping> {};

TEST_P(BundleEngineTest, EachTrialHasTheBitsOfItsRunAlone) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam,
        OptimizerKind::kAdamW}) {
    ExpectAllLikeAlone(Options(GetParam(), InputMode::kDense, 2), Five(kind));
  }
}

TEST_P(BundleEngineTest, OverNonzerosAsWell) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum}) {
    ExpectAllLikeAlone(Options(GetParam(), InputMode::kSparse, 2), Five(kind));
  }
}

TEST_P(BundleEngineTest, WithAnyNumberOfWorkers) {
  for (const int workers : {1, 3}) {
    ExpectAllLikeAlone(Options(GetParam(), InputMode::kDense, workers),
                       Five(OptimizerKind::kMomentum));
  }
}

TEST_P(BundleEngineTest, WithTrialsOfOtherKindsInAnyOrder) {
  std::vector<Trial> trials = Five(OptimizerKind::kSgd);
  for (Trial other : Five(OptimizerKind::kSgd)) {
    other.index += 5;
    other.model.widths = {30, 7, 6, 4};
    other.batch = other.index % 2 == 0 ? 16 : 300;  // 300: all rows are a tail
    other.optimizer.weight_decay = 0.02f;
    trials.push_back(other);
  }
  std::reverse(trials.begin(), trials.end());
  ExpectAllLikeAlone(Options(GetParam(), InputMode::kDense, 2), trials);
}

TEST_P(BundleEngineTest, OneThatDivergesIsMarkedAndChangesNoOther) {
  std::vector<Trial> trials = Five(OptimizerKind::kSgd);
  Trial wild = trials[2];
  wild.index = 9;
  wild.lr = 1e30;
  trials.insert(trials.begin() + 2, wild);
  const std::unique_ptr<TrialEngine> engine =
      EngineFor(Options(GetParam(), InputMode::kDense, 2), trials);
  std::map<int64_t, std::unique_ptr<Solo>> alone;
  for (const Trial& trial : Five(OptimizerKind::kSgd)) {
    alone[trial.index] = TrainAlone(trial, false);
  }
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    ASSERT_OK_AND_ASSIGN(const std::vector<EpochOutcome> outcomes,
                         engine->RunEpoch(epoch, Continue));
    ASSERT_EQ(outcomes.size(), epoch == 1 ? 6 : 5);
    for (const EpochOutcome& outcome : outcomes) {
      if (outcome.index < 9) {
        ExpectLikeAlone(outcome, epoch, *alone.at(outcome.index));
      } else {
        EXPECT_GE(outcome.diverged_step, 2);
        EXPECT_LE(outcome.diverged_step, 4);
      }
    }
    if (epoch == 1) engine->Drop(9);
  }
  for (const auto& [index, solo] : alone) {
    ExpectSameBits(engine->Params(index), solo->params);
  }
}

TEST_P(BundleEngineTest, ThoseThatStayGoOnWhenOthersAreDropped) {
  const std::vector<Trial> trials = Five(OptimizerKind::kAdam);
  const std::unique_ptr<TrialEngine> engine =
      EngineFor(Options(GetParam(), InputMode::kDense, 2), trials);
  EXPECT_OK(engine->RunEpoch(1, Continue).status());
  engine->Drop(3);
  EXPECT_OK(engine->RunEpoch(2, Continue).status());
  engine->Drop(0);
  engine->Drop(4);
  ASSERT_OK_AND_ASSIGN(const std::vector<EpochOutcome> outcomes,
                       engine->RunEpoch(3, Continue));
  ASSERT_EQ(outcomes.size(), 2);
  for (const EpochOutcome& outcome : outcomes) {
    const std::unique_ptr<Solo> solo = TrainAlone(trials[outcome.index], false);
    ExpectLikeAlone(outcome, 3, *solo);
    ExpectSameBits(engine->Params(outcome.index), solo->params);
  }
}

TEST_P(BundleEngineTest, ASecondWaveBeginsAtItsOwnFirstEpoch) {
  const std::vector<Trial> trials = Five(OptimizerKind::kAdam);
  const std::unique_ptr<TrialEngine> engine =
      EngineFor(Options(GetParam(), InputMode::kDense, 2), {trials[0]});
  EXPECT_OK(engine->RunEpoch(1, Continue).status());
  engine->Drop(0);
  EXPECT_OK(engine->Add(trials[1]));
  EXPECT_OK(engine->Add(trials[2]));
  ASSERT_OK_AND_ASSIGN(const std::vector<EpochOutcome> outcomes,
                       engine->RunEpoch(1, Continue));
  ASSERT_EQ(outcomes.size(), 2);
  for (const EpochOutcome& outcome : outcomes) {
    ExpectLikeAlone(outcome, 1, *TrainAlone(trials[outcome.index], false));
  }
}

TEST_P(BundleEngineTest, AllDivergedIsNoError) {
  std::vector<Trial> trials = Five(OptimizerKind::kSgd);
  for (Trial& trial : trials) trial.lr = 1e30;
  const std::unique_ptr<TrialEngine> engine =
      EngineFor(Options(GetParam(), InputMode::kDense, 2), trials);
  ASSERT_OK_AND_ASSIGN(const std::vector<EpochOutcome> outcomes,
                       engine->RunEpoch(1, Continue));
  ASSERT_EQ(outcomes.size(), 5);
  for (const EpochOutcome& outcome : outcomes) {
    EXPECT_GT(outcome.diverged_step, 0);
  }
}

TEST_P(BundleEngineTest, CountsTheStepsOfAllTrialsAndStopsAtAPoll) {
  const std::unique_ptr<TrialEngine> engine = EngineFor(
      Options(GetParam(), InputMode::kDense, 2), Five(OptimizerKind::kSgd));
  int64_t polls = 0;
  const auto poll = [&](int64_t steps, int64_t of) {
    EXPECT_LE(steps, of);
    EXPECT_EQ(of, 5 * 26);
    return ++polls < 2;
  };
  EXPECT_THAT(engine->RunEpoch(1, poll).status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_EQ(polls, 2);
}

TEST_P(BundleEngineTest, WithoutValidationRowsThereIsNothingToEvaluate) {
  auto engine = CreateBundleEngine(Options(GetParam(), InputMode::kDense, 2),
                                   Data(), kTrainRows, kTrainRows);
  ASSERT_OK(engine.status());
  for (const Trial& trial : Five(OptimizerKind::kSgd)) {
    EXPECT_OK((*engine)->Add(trial));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<EpochOutcome> outcomes,
                       (*engine)->RunEpoch(1, Continue));
  ASSERT_EQ(outcomes.size(), 5);
  for (const EpochOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.diverged_step, 0);
    EXPECT_TRUE(std::isnan(outcome.epoch.validation_loss));
    EXPECT_TRUE(std::isnan(outcome.epoch.validation_accuracy));
  }
}

INSTANTIATE_TEST_SUITE_P(Groupings, BundleEngineTest,
                         testing::Values(Grouping::kLoop, Grouping::kVector),
                         [](const auto& info) {
                           return info.param == Grouping::kLoop ? "Loop"
                                                                : "Vector";
                         });

class BundleEngineWayTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONESTEP_CACHE", folder_.path().c_str(), /*overwrite=*/1);
  }
  void TearDown() override { unsetenv("ONESTEP_CACHE"); }

  TempFolder folder_;
};

// Two kinds, of five trials and of one, whose epochs are long enough to time.
class BundleEngineTimingTest : public BundleEngineWayTest {
 protected:
  static constexpr int64_t kTrainRows = 40000;

  void SetUp() override {
    BundleEngineWayTest::SetUp();
    trials_ = Five(OptimizerKind::kSgd);
    trials_.push_back(trials_[0]);
    trials_.back().index = 5;
    for (Trial& trial : trials_) {
      trial.model.widths = {6, 3};
      trial.batch = trial.index < 5 ? 1 : 2;
    }
    auto engine =
        CreateBundleEngine(Options(Grouping::kAuto, InputMode::kDense, 2),
                           data_, kTrainRows, kTrainRows);
    ASSERT_OK(engine.status());
    engine_ = *std::move(engine);
    for (const Trial& trial : trials_) ASSERT_OK(engine_->Add(trial));
  }
  std::vector<GroupReport> Groups(int64_t epoch) {
    EXPECT_OK(engine_->RunEpoch(epoch, Continue).status());
    return engine_->Groups();
  }

  const Dataset data_ = RandomRows(kTrainRows, 6, 3, /*seed=*/1);
  std::vector<Trial> trials_;
  std::unique_ptr<TrialEngine> engine_;
};

TEST_F(BundleEngineTimingTest, AutoTimesBothWaysAndTakesTheFaster) {
  const std::vector<GroupReport> groups = Groups(1);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].kind, "6-3, batch 1, sgd");
  EXPECT_EQ(groups[0].trials, 5);
  EXPECT_GT(groups[0].vector_us, 0);
  EXPECT_GT(groups[0].loop_us, 0);
  const bool vector = groups[0].vector_us < groups[0].loop_us;
  EXPECT_EQ(groups[0].way, vector ? "vector" : "loop");
  EXPECT_EQ(groups[0].programs, vector ? 2 : 5);
  EXPECT_THAT(groups[0].lowering, HasSubstr("team of 1 worker"));
  EXPECT_EQ(groups[1].kind, "6-3, batch 2, sgd");
  EXPECT_EQ(groups[1].trials, 1);
  EXPECT_EQ(groups[1].way, "loop");  // there is no choice
  EXPECT_EQ(groups[1].vector_us, 0);
  EXPECT_EQ(groups[1].loop_us, 0);
}

TEST_F(BundleEngineTimingTest, AutoTimesANumberOfTrialsLikeThatOnce) {
  const double loop_us = Groups(1)[0].loop_us;
  ASSERT_GT(loop_us, 0);
  engine_->Drop(0);  // 4 are like 5
  EXPECT_EQ(Groups(2)[0].loop_us, loop_us);
  for (const int64_t index : {1, 2}) engine_->Drop(index);
  EXPECT_EQ(Groups(3)[0].loop_us, 0);  // an epoch of 2 is not worth it
  for (const int64_t index : {3, 4}) engine_->Drop(index);
  for (int64_t i = 0; i < 5; ++i) ASSERT_OK(engine_->Add(trials_[i]));
  EXPECT_EQ(Groups(1)[0].loop_us, loop_us);
}

TEST_F(BundleEngineWayTest, AutoGoesByTheWeightsWhereAnEpochIsShort) {
  for (const int64_t hidden : {9, 3000}) {
    std::vector<Trial> trials = Five(OptimizerKind::kSgd);
    trials.resize(2);
    for (Trial& trial : trials) {
      trial.model.widths = {30, hidden, 4};
      trial.batch = 64;
    }
    const std::unique_ptr<TrialEngine> engine =
        EngineFor(Options(Grouping::kAuto, InputMode::kAuto, 2), trials);
    ASSERT_OK(engine->RunEpoch(1, Continue).status());
    const GroupReport group = engine->Groups()[0];
    EXPECT_EQ(group.way, hidden == 9 ? "vector" : "loop");
    EXPECT_EQ(group.vector_us, 0);
    EXPECT_EQ(group.loop_us, 0);
  }
}

TEST_F(BundleEngineWayTest, AutoWalksNonzerosByARuleOfTheTrialAlone) {
  for (const int64_t hidden : {9, 16}) {
    std::vector<Trial> trials = Five(OptimizerKind::kSgd);
    for (Trial& trial : trials) trial.model.widths = {30, hidden, 4};
    for (const Grouping grouping : {Grouping::kLoop, Grouping::kVector}) {
      const std::unique_ptr<TrialEngine> engine =
          EngineFor(Options(grouping, InputMode::kAuto, 2), trials);
      ASSERT_OK_AND_ASSIGN(const std::vector<EpochOutcome> outcomes,
                           engine->RunEpoch(1, Continue));
      const GroupReport group = engine->Groups()[0];
      const bool sparse = hidden == 16;
      EXPECT_EQ(group.sparse, sparse);
      EXPECT_EQ(group.kind, group.name + (sparse ? ", sparse input" : ""));
      for (const EpochOutcome& outcome : outcomes) {
        ExpectLikeAlone(outcome, 1, *TrainAlone(trials[outcome.index], sparse));
      }
    }
  }
}

TEST_F(BundleEngineWayTest, AWayThatCannotBeIsRefusedWithItsReason) {
  EngineOptions options = Options(Grouping::kAuto, InputMode::kDense, 2);
  options.compile.disabled_passes = {"vectorize"};
  const std::vector<Trial> trials = Five(OptimizerKind::kSgd);
  const std::unique_ptr<TrialEngine> engine = EngineFor(options, trials);
  ASSERT_OK(engine->RunEpoch(1, Continue).status());
  const GroupReport group = engine->Groups()[0];
  EXPECT_EQ(group.way, "loop");
  EXPECT_THAT(
      group.refused,
      testing::ElementsAre("vector: many models: pass vectorize did not run"));
  EXPECT_THAT(group.lowering, Not(HasSubstr("vectorize")));
  options.grouping = Grouping::kVector;
  EXPECT_THAT(
      EngineFor(options, trials)->RunEpoch(1, Continue).status(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("vectorize")));
}

TEST_F(BundleEngineWayTest, ForcedWaysAreNotTimed) {
  for (const Grouping grouping : {Grouping::kVector, Grouping::kLoop}) {
    const std::unique_ptr<TrialEngine> engine =
        EngineFor(Options(grouping, InputMode::kSparse, 1),
                  Five(OptimizerKind::kMomentum));
    ASSERT_OK(engine->RunEpoch(1, Continue).status());
    const GroupReport group = engine->Groups()[0];
    EXPECT_EQ(group.kind, "30-9-4, batch 8, momentum, sparse input");
    EXPECT_EQ(group.way, grouping == Grouping::kVector ? "vector" : "loop");
    EXPECT_EQ(group.programs, grouping == Grouping::kVector ? 1 : 5);
    EXPECT_EQ(group.vector_us, 0);
    EXPECT_EQ(group.loop_us, 0);
  }
}

}  // namespace
}  // namespace onestep
