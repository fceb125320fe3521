// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/search/sample_outcome.h"
#include "trainer/config.h"
#include "trainer/search/trial_columns.h"

namespace onestep {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Three trials over lr: 1 is the best, 2 diverged.
SearchOutcome ThreeTrials() {
  SearchOutcome outcome;
  outcome.varied = {"lr", "weight-decay"};
  for (int i = 0; i < 3; ++i) {
    TrialResult result;
    result.trial.index = i;
    result.trial.model.widths = {8, 16, 4};
    result.trial.optimizer.weight_decay = 0.1f;
    result.trial.lr = 0.01 * std::pow(10, i);
    result.status = TrialStatus::kFinished;
    result.epochs = {{2, 0.5, 1.5, 0.625}, {1.25, 0.75, 1.0 / (i + 1), 0.875}};
    outcome.results.push_back(result);
  }
  outcome.results[2].status = TrialStatus::kDiverged;
  outcome.results[2].diverged_step = 17;
  outcome.results[2].epochs.clear();
  outcome.best = 1;
  GroupReport group;
  group.name = group.kind = "8-16-4, batch 8, sgd";
  group.trials = 3;
  group.way = "vector";
  group.programs = 1;
  group.vector_us = 1.2;
  group.loop_us = 4.8;
  outcome.groups = {group};
  outcome.epochs = {{1, 1, 3, 0.5, 0.25}, {1, 2, 2, 0.25, 0.125}};
  outcome.seconds = 1.5;
  return outcome;
}

TEST(SearchReportTest, TableHasTheBestFirstAndThoseThatDivergedAfterTheOthers) {
  EXPECT_EQ(SearchTable(ThreeTrials()),
            "trial    lr  weight-decay  epochs  loss  validation loss  "
            "accuracy  status\n"
            "    1   0.1           0.1       2  1.25              0.5   "
            "87.50 %  finished\n"
            "    0  0.01           0.1       2  1.25                1   "
            "87.50 %  finished\n"
            "    2     1           0.1       0     -                -         "
            "-  diverged at step 17\n"
            "\n"
            "best: trial 1, lr 0.1, weight-decay 0.1: validation loss 0.5, "
            "accuracy 87.50 % after epoch 2\n"
            "8-16-4, batch 8, sgd: 3 trials in 1 program: vector 1.20 us, loop "
            "4.80 us a model step: vector\n"
            "3 trials in 1.50 s\n");
}

TEST(SearchReportTest, TableNamesNoBestWhenAllDiverged) {
  const std::string table = SearchTable(DivergedOutcome());
  EXPECT_THAT(table,
              HasSubstr("    0       0     -                -         -  "
                        "diverged at step 7\n"));
  EXPECT_THAT(table, HasSubstr("\nno best: no trial that did not diverge\n"));
  EXPECT_THAT(table, HasSubstr("1 trial in 1 program: loop\n"));
  EXPECT_THAT(table, HasSubstr("1 trial in 0.01 s\n"));
  EXPECT_THAT(table, Not(HasSubstr("best: trial")));
}

TEST(SearchReportTest, AWayThatWasRefusedIsSaidWithTheReason) {
  SearchOutcome outcome = ThreeTrials();
  outcome.groups[0].refused = {"vector: no rule for many models"};
  EXPECT_THAT(SearchTable(outcome),
              HasSubstr(" a model step: vector; vector refused: no rule for "
                        "many models\n"));
  EXPECT_EQ(SearchToJson(outcome)["groups"][0]["refused"],
            Json{"vector: no rule for many models"});
}

TEST(SearchReportTest, TableSaysWhatARunLeftUndone) {
  const std::string table = SearchTable(SampleOutcome());
  for (const char* status :
       {"stopped at epoch 2", "broken off after epoch 3", "not begun",
        "diverged at step 3017", "finished"}) {
    EXPECT_THAT(table, HasSubstr(status));
  }
  EXPECT_THAT(table, HasSubstr("20 trials in 4.50 s, 2 of them ended by an "
                               "earlier run, ended early: time limit\n"));
}

TEST(SearchReportTest, StatusOfATrialBrokenOffAtOnceNamesTheEpoch) {
  TrialResult result;
  result.status = TrialStatus::kTraining;
  EXPECT_EQ(StatusText(result), "broken off in epoch 1");
}

std::vector<int64_t> IndicesBestFirst(const SearchOutcome& outcome) {
  std::vector<int64_t> order;
  for (const TrialResult* result : BestFirst(outcome)) {
    order.push_back(result->trial.index);
  }
  return order;
}

TEST(SearchReportTest, ALossThatIsNotFiniteIsTheWorst) {
  SearchOutcome outcome = ThreeTrials();
  outcome.best = -1;
  outcome.results[1].epochs[1].validation_loss = kNan;
  EXPECT_EQ(IndicesBestFirst(outcome), (std::vector<int64_t>{0, 1, 2}));
}

TEST(SearchReportTest, TrialsAreInOrderOfTheAccuracyWhereThatMakesTheBest) {
  SearchOutcome outcome = ThreeTrials();
  outcome.by_accuracy = true;
  outcome.best = 0;
  outcome.results.push_back(outcome.results[1]);
  outcome.results[3].trial.index = 3;
  outcome.results[3].epochs[1].validation_accuracy = 0.9;
  outcome.results[3].epochs[1].validation_loss = 100;
  EXPECT_EQ(IndicesBestFirst(outcome), (std::vector<int64_t>{0, 3, 1, 2}));
}

TEST(SearchReportTest, JsonHasEveryEpochOfTrialsAndOfWaves) {
  const Json json = SearchToJson(ThreeTrials());
  EXPECT_EQ(json["best"], 1);
  EXPECT_EQ(json["varied"], (Json{"lr", "weight_decay"}));
  EXPECT_EQ(json["train_seconds"], 0.75);
  EXPECT_EQ(json["evaluate_seconds"], 0.375);
  EXPECT_EQ(json["model_epochs"], 5);
  EXPECT_EQ(json["waves"][1], (Json{{"wave", 1},
                                    {"epoch", 2},
                                    {"trials", 2},
                                    {"train_seconds", 0.25},
                                    {"evaluate_seconds", 0.125}}));
  EXPECT_EQ(json["trials"].size(), 3);
  const Json& trial = json["trials"][1];
  EXPECT_EQ(trial["hidden"], "16");
  EXPECT_EQ(trial["momentum"], nullptr);
  EXPECT_EQ(trial["weight_decay"], 0.1);  // not 0.10000000149
  EXPECT_EQ(trial["status"], "finished");
  EXPECT_EQ(trial["diverged_step"], nullptr);
  EXPECT_EQ(trial["epochs"][1], (Json{{"epoch", 2},
                                      {"loss", 1.25},
                                      {"train_accuracy", 0.75},
                                      {"validation_loss", 0.5},
                                      {"validation_accuracy", 0.875}}));
  EXPECT_EQ(json["trials"][2]["diverged_step"], 17);
  EXPECT_EQ(json["groups"][0]["vector_us"], 1.2);
}

TEST(SearchReportTest, JsonHasNullForWhatIsNotKnown) {
  SearchOutcome outcome = DivergedOutcome();
  outcome.results[0].epochs = {{kNan, 0.5, INFINITY, 0.5}};
  const Json json = Json::parse(SearchToJson(outcome).dump());
  EXPECT_EQ(json["best"], nullptr);
  EXPECT_EQ(json["groups"][0]["loop_us"], nullptr);
  EXPECT_EQ(json["trials"][0]["epochs"][0]["loss"], nullptr);
  EXPECT_EQ(json["trials"][0]["epochs"][0]["validation_loss"], nullptr);
}

TEST(SearchReportTest, CsvHasARecordForEachTrialInTrialOrder) {
  SearchOutcome outcome = ThreeTrials();
  outcome.results[0].trial.model.widths = {8, 16, 12, 4};
  outcome.results[1].trial.optimizer.kind = OptimizerKind::kMomentum;
  EXPECT_EQ(SearchCsv(outcome),
            "trial,hidden,batch,optimizer,activation,lr,momentum,weight_decay,"
            "seed,epochs,loss,train_accuracy,validation_loss,"
            "validation_accuracy,status,diverged_step\r\n"
            "0,16-12,32,sgd,relu,0.01,,0.1,1,2,1.25,0.75,1.0,0.875,finished,"
            "\r\n"
            "1,16,32,momentum,relu,0.1,0.9,0.1,1,2,1.25,0.75,0.5,0.875,"
            "finished,\r\n"
            "2,16,32,sgd,relu,1.0,,0.1,1,0,,,,,diverged,17\r\n");
}

TEST(SearchReportTest, PageOfManyTrialsHasTheBestInLessThanAMegabyte) {
  const std::string page = SearchPage(LargeOutcome(5000, 40), {{"epochs", 40}});
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_LT(page.size(), 1'000'000);
  EXPECT_THAT(page, HasSubstr("\"all_trials\":5000"));
  EXPECT_THAT(page, HasSubstr("\"index\":3000,"));  // the best
  EXPECT_THAT(page, HasSubstr("\"epoch\":40,"));    // the last
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(SearchReportTest, PageHasEveryEpochOfAFewTrialsAndTheCommandOnce) {
  const std::string page =
      SearchPage(SampleOutcome(30), {{"command", "trainer search --lr 1"}});
  EXPECT_THAT(page, HasSubstr("\"epoch_stride\":1,"));
  EXPECT_THAT(page, HasSubstr("\"command\":\"trainer search --lr 1\""));
  EXPECT_THAT(page, HasSubstr("\"config\":{}"));
}

}  // namespace
}  // namespace onestep
