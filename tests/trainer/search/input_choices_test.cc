// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/input_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class InputChoicesTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONESTEP_CACHE", dir_.c_str(), /*overwrite=*/1);
    data_.images = {0, 1};
    data_.rows = data_.features = 1;
    results_.resize(2);
    results_[0].trial.model.widths = {784, 10};
    results_[1].trial.model.widths = {784, 64, 10};
    groups_.resize(2);
    groups_[0].kind = "784-10, batch 32, sgd";
    groups_[1].kind = "784-64-10, batch 32, sgd, sparse input";
  }
  void TearDown() override {
    unsetenv("ONESTEP_CACHE");
    std::filesystem::remove_all(dir_);
  }
  InputsByKind Kept() const {
    return InputChoices(config_, data_, results_).Kept();
  }

  const std::string dir_ = testing::TempDir() + "/input_choices_test";
  Config config_;
  Dataset data_;
  std::vector<TrialResult> results_;
  std::vector<GroupReport> groups_;
};

TEST_F(InputChoicesTest, AreThereInTheNextRun) {
  EXPECT_THAT(Kept(), IsEmpty());
  InputChoices(config_, data_, results_).Keep(groups_);
  EXPECT_THAT(
      Kept(),
      ElementsAre(Pair("784-10, batch 32, sgd", InputMode::kDense),
                  Pair("784-64-10, batch 32, sgd", InputMode::kSparse)));
}

TEST_F(InputChoicesTest, TheFirstIsKept) {
  InputChoices(config_, data_, results_).Keep(groups_);
  groups_[1].kind = "784-64-10, batch 32, sgd";
  InputChoices(config_, data_, results_).Keep(groups_);
  EXPECT_EQ(Kept()["784-64-10, batch 32, sgd"], InputMode::kSparse);
}

TEST_F(InputChoicesTest, AreOfTheFlagsTheyHangOn) {
  InputChoices(config_, data_, results_).Keep(groups_);
  config_.search.group = Grouping::kLoop;
  EXPECT_THAT(Kept(), IsEmpty());
}

TEST_F(InputChoicesTest, AreOfTheNumberOfTrials) {
  InputChoices(config_, data_, results_).Keep(groups_);
  results_.push_back(results_[1]);
  EXPECT_THAT(Kept(),
              ElementsAre(Pair("784-10, batch 32, sgd", InputMode::kDense)));
}

TEST_F(InputChoicesTest, AreOnlyOfAuto) {
  InputChoices(config_, data_, results_).Keep(groups_);
  config_.input = InputMode::kDense;
  EXPECT_THAT(Kept(), IsEmpty());
}

}  // namespace
}  // namespace onestep
