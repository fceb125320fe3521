// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "trainer/model_file.h"
#include "trainer/search/search_report.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

class SearchFileTest : public testing::Test {
 protected:
  SearchFileTest()
      : dir_(testing::TempDir() + "/search_file_test_" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(dir_);
    config_.out = dir_;
    config_.verb = Verb::kSearch;
    config_.model.widths = {4, 128, 3};
  }
  ~SearchFileTest() override { fs::remove_all(dir_); }

  static std::vector<TrialResult> Trials() {
    std::vector<TrialResult> results(4);
    for (int i = 0; i < 4; ++i) {
      Trial& trial = results[i].trial;
      trial.index = i;
      trial.model.widths = {4, 3};
      trial.lr = 0.1 / (i + 3);
      trial.optimizer.weight_decay = 0.1f;
    }
    return results;
  }
  // Trial 1 stopped, 0 diverged, 2 in training, 3 not begun.
  SearchOutcome Outcome() const {
    SearchOutcome outcome;
    outcome.results = Trials();
    outcome.results[0].status = TrialStatus::kDiverged;
    outcome.results[0].diverged_step = 17;
    outcome.results[1].status = TrialStatus::kStopped;
    outcome.results[1].epochs = {{1.0 / 3, 0.5, std::nan(""), 0.25},
                                 {0.1, 0.2, 0.7, 0.4}};
    outcome.results[2].status = TrialStatus::kTraining;
    outcome.results[2].epochs = {{0.1, 0.2, 0.3, 0.4}};
    outcome.best = 2;
    GroupReport group;
    group.name = "4-3, batch 32, sgd";
    group.kind = group.name + ", sparse input";
    group.sparse = true;
    group.trials = 3;
    group.way = "loop";
    group.programs = 2;
    group.loop_us = 1.5;
    group.lowering = "team";
    group.refused = {"vector: no"};
    outcome.groups = {group};
    outcome.epochs = {{4, 1, 3, 2.5, 0.5}};
    outcome.seconds = 12;
    return outcome;
  }
  static KeptModel Model(int64_t trial, float weight) {
    KeptModel model;
    model.trial = trial;
    model.params = *InitParams(Trials()[0].trial.model, Init::kHe, 1);
    model.params[0].data.as<float>()[0] = weight;
    return model;
  }
  KeptModels Models() const {
    KeptModels models;
    models.ended = Model(1, 1);
    models.training = Model(2, 2);
    return models;
  }
  absl::Status Resume() {
    SearchOutcome outcome;
    outcome.results = Trials();
    KeptModels models;
    return SearchFolder(config_, rows_).Resume(outcome, models);
  }

  const std::string dir_;
  Config config_;
  SearchRows rows_ = {"d/train-images", 100, 20};
};

TEST_F(SearchFileTest, WhatEndedIsThereAgain) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  ASSERT_OK(folder.Update(Outcome(), Models()));
  SearchOutcome outcome;
  outcome.results = Trials();
  KeptModels models;
  ASSERT_OK(SearchFolder(config_, rows_).Resume(outcome, models));
  const std::vector<TrialResult>& results = outcome.results;
  EXPECT_EQ(results[0].status, TrialStatus::kDiverged);
  EXPECT_EQ(results[0].diverged_step, 17);
  EXPECT_EQ(results[1].status, TrialStatus::kStopped);
  ASSERT_EQ(results[1].epochs.size(), 2u);
  EXPECT_EQ(results[1].epochs[0].loss, 1.0 / 3);
  EXPECT_TRUE(std::isinf(results[1].epochs[0].validation_loss));
  EXPECT_EQ(results[1].epochs[1].validation_accuracy, 0.4);
  EXPECT_EQ(results[2].status, TrialStatus::kTraining);
  EXPECT_EQ(results[3].status, TrialStatus::kWaiting);
  EXPECT_EQ(models.ended.trial, 1);
  EXPECT_EQ(models.ended.params[0].data.as<float>()[0], 1);
  ASSERT_EQ(outcome.groups.size(), 1u);
  const GroupReport& group = outcome.groups[0];
  EXPECT_EQ(group.kind, "4-3, batch 32, sgd, sparse input");
  EXPECT_EQ(group.name, "4-3, batch 32, sgd");
  EXPECT_TRUE(group.sparse);
  EXPECT_EQ(group.trials, 3);
  EXPECT_EQ(group.way, "loop");
  EXPECT_EQ(group.programs, 2);
  EXPECT_EQ(group.vector_us, 0);
  EXPECT_EQ(group.loop_us, 1.5);
  EXPECT_EQ(group.lowering, "team");
  EXPECT_EQ(group.refused, std::vector<std::string>{"vector: no"});
  ASSERT_EQ(outcome.epochs.size(), 1u);
  EXPECT_EQ(outcome.epochs[0].wave, 4);
  EXPECT_EQ(outcome.epochs[0].evaluate_seconds, 0.5);
  EXPECT_EQ(outcome.seconds, 12);
}

TEST_F(SearchFileTest, TheBestModelIsWhereEvalLooks) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  ASSERT_OK(folder.Finish(Outcome(), Models()));
  ASSERT_OK_AND_ASSIGN(const LoadedModel best, ReadModel(dir_ + "/best"));
  EXPECT_EQ(best.params[0].data.as<float>()[0], 2);
  for (const char* name : {"best/config.json", "trials.csv", "search.html"}) {
    EXPECT_TRUE(fs::exists(dir_ + "/" + name)) << name;
  }
}

TEST_F(SearchFileTest, OneModelOfThoseThatEndedIsKept) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  SearchOutcome outcome = Outcome();
  KeptModels models = Models();
  ASSERT_OK(folder.Update(outcome, models));
  outcome.results[2].status = TrialStatus::kFinished;
  models.ended = Model(2, 3);
  models.training.trial = -1;
  ASSERT_OK(folder.Update(outcome, models));
  EXPECT_TRUE(fs::exists(dir_ + "/trial-2.safetensors"));
  EXPECT_FALSE(fs::exists(dir_ + "/trial-1.safetensors"));
}

TEST_F(SearchFileTest, ANewSearchLeavesNothingOfTheOldOne) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  ASSERT_OK(folder.Finish(Outcome(), Models()));
  ASSERT_OK(SearchFolder(config_, rows_).Create());
  EXPECT_TRUE(fs::is_empty(dir_));
}

TEST_F(SearchFileTest, AnotherSearchIsRefusedWithTheFlag) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  ASSERT_OK(folder.Update(Outcome(), Models()));
  config_.search.space.weight_decay.values = {0.5};
  EXPECT_THAT(Resume(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--resume: want --weight-decay 0 as in"),
                             HasSubstr("search.json, got 0.5"))));
}

TEST_F(SearchFileTest, OtherRowsAreRefused) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  ASSERT_OK(folder.Update(Outcome(), Models()));
  rows_.train = 99;
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("want rows: train 100 as in"),
                                       HasSubstr("search.json, got 99"))));
  rows_ = {"e/train-images", 100, 20};
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("want rows: source d/train-images "
                                           "as in")));
}

TEST_F(SearchFileTest, AnotherTrialsModelIsRefusedWithFileAndTrial) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  ASSERT_OK(folder.Update(Outcome(), Models()));
  ModelSpec other;
  other.widths = {4, 5, 3};
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> params,
                       InitParams(other, Init::kHe, 1));
  ASSERT_OK(WriteModel(dir_ + "/trial-1.safetensors", other, params, {}));
  EXPECT_THAT(Resume(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("/trial-1.safetensors: want widths 4-3 of "
                                 "trial 1, got 4-5-3")));
}

TEST_F(SearchFileTest, DraftsThatWereBrokenOffAreRemoved) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  ASSERT_OK(folder.Update(Outcome(), Models()));
  const auto drafts = {dir_ + "/search.json.tmp.5",
                       dir_ + "/trial-3.safetensors.tmp.5"};
  for (const std::string& draft : drafts) std::ofstream(draft) << "half";
  std::ofstream(dir_ + "/notes.tmp.5") << "not ours";
  ASSERT_OK(Resume());
  for (const std::string& draft : drafts) EXPECT_FALSE(fs::exists(draft));
  EXPECT_TRUE(fs::exists(dir_ + "/search.json"));
  EXPECT_TRUE(fs::exists(dir_ + "/notes.tmp.5"));
}

TEST_F(SearchFileTest, HowItRunsMayDiffer) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  ASSERT_OK(folder.Update(Outcome(), Models()));
  config_.compile.threads = 7;
  config_.search.parallel = 3;
  config_.search.group = Grouping::kLoop;
  config_.search.time_limit = 5;
  config_.arguments = {"search", "--resume"};
  EXPECT_OK(Resume());
}

TEST_F(SearchFileTest, ThereMustBeASearchToGoOnWith) {
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kNotFound,
                                 HasSubstr("--resume: want a search")));
}

TEST_F(SearchFileTest, WhatIsNotWholeIsRefusedWithTheFile) {
  SearchFolder folder(config_, rows_);
  ASSERT_OK(folder.Create());
  for (const char* text :
       {"", "[]", "{\"configuration\": {}}", "{\"configuration\": 1}"}) {
    std::ofstream(dir_ + "/search.json") << text;
    EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kDataLoss,
                                   HasSubstr("search.json: want an object")))
        << text;
  }
}

TEST_F(SearchFileTest, ResultsOfOtherTrialsAreRefused) {
  const nlohmann::ordered_json whole = SearchToJson(Outcome());
  const nlohmann::ordered_json& good = whole["trials"];
  const auto refused = [&whole](const nlohmann::ordered_json& trials) {
    nlohmann::ordered_json json = whole;
    json["trials"] = trials;
    SearchOutcome outcome;
    outcome.results = Trials();
    return ReadOutcome(json, /*epochs=*/5, outcome);
  };
  EXPECT_OK(refused(good));
  nlohmann::ordered_json bad = good;
  bad[2]["lr"] = 5;
  EXPECT_THAT(refused(bad),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("trial 2: want lr 0.02, got 5")));
  bad = good;
  bad.erase(3);
  EXPECT_THAT(refused(bad), StatusIs(absl::StatusCode::kDataLoss,
                                     HasSubstr("want 4 trials, got 3")));
  bad = good;
  bad[1]["epochs"] = nlohmann::ordered_json::array();
  EXPECT_THAT(refused(bad), StatusIs(absl::StatusCode::kDataLoss,
                                     HasSubstr("trial 1: stopped after 0")));
  bad = good;
  bad[1]["status"] = "finished";
  EXPECT_THAT(refused(bad),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("trial 1: finished after 2 of 5 epochs")));
  bad[1]["status"] = "done";
  EXPECT_THAT(refused(bad), StatusIs(absl::StatusCode::kDataLoss,
                                     HasSubstr("trial 1: want a status, got "
                                               "done")));
  bad = good;
  bad[0].erase("epochs");
  EXPECT_THAT(refused(bad),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("epochs")));
}

}  // namespace
}  // namespace onestep
