// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

NumberAxis Axis(const std::string& text) {
  const absl::StatusOr<NumberAxis> axis = ParseNumberAxis(text, 0, 10);
  EXPECT_OK(axis) << text;
  return axis.value_or(NumberAxis());
}

Trial Base() {
  Trial base;
  base.model.widths = {784, 10};
  return base;
}

std::vector<Trial> Grid(const SearchSpace& space) {
  const auto trials = GridTrials(space, Base());
  EXPECT_OK(trials);
  return trials.value_or(std::vector<Trial>());
}

std::vector<double> LearningRates(const std::vector<Trial>& trials) {
  std::vector<double> lrs;
  for (const Trial& trial : trials) lrs.push_back(trial.lr);
  return lrs;
}

TEST(SearchSpaceTest, AListHasTheValuesInItsOrder) {
  EXPECT_THAT(Axis("0.1,1e-3,10").values, ElementsAre(0.1, 1e-3, 10));
}

TEST(SearchSpaceTest, ARangeWithPointsIsAListWithBothEnds) {
  EXPECT_THAT(Axis("log:1e-4..1:5").values,
              ElementsAre(1e-4, 1e-3, 1e-2, 0.1, 1));
  EXPECT_THAT(Axis("lin:0..0.9:4").values, ElementsAre(0, 0.3, 0.6, 0.9));
}

TEST(SearchSpaceTest, ARangeWithoutPointsHasEnds) {
  const NumberAxis axis = Axis("log:1e-4..1");
  EXPECT_THAT(axis.values, IsEmpty());
  EXPECT_TRUE(axis.log);
  EXPECT_EQ(axis.low, 1e-4);
  EXPECT_EQ(axis.high, 1);
}

TEST(SearchSpaceTest, RefusesNumbersWithTheItem) {
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, std::string>>{
           {"0.1,x", "want a number from 0 to 10, got 'x'"},
           {"0.1,0.1", "want each value once, got '0.1' again"},
           {"0.1,,1", "got ''"},
           {"log:0..1", "want LOW above 0 and below HIGH, got '0..1'"},
           {"lin:1..1", "want LOW below HIGH, got '1..1'"},
           {"lin:1..20", "want a number from 0 to 10, got '20'"},
           {"log:1", "want LOW..HIGH or LOW..HIGH:POINTS"},
           {"log:1..2:1", "want an integer from 2 to 1000, got '1'"},
           {"log:1..2:3:4", "got '1..2:3:4'"}}) {
    EXPECT_THAT(ParseNumberAxis(text, 0, 10),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(part)))
        << text;
  }
}

TEST(SearchSpaceTest, HiddenLayersAreWidthsOrNone) {
  EXPECT_THAT(*ParseHidden("128-64"), ElementsAre(128, 64));
  EXPECT_THAT(*ParseHidden("none"), IsEmpty());
  for (const char* text : {"", "0", "128-", "128x64"}) {
    EXPECT_THAT(ParseHidden(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("128-64, or none, got")))
        << text;
  }
}

TEST(SearchSpaceTest, TheDefaultIsTheTrialThatTrainTrains) {
  const std::vector<Trial> trials = Grid({});
  ASSERT_THAT(trials, SizeIs(1));
  EXPECT_THAT(trials[0].model.widths, ElementsAre(784, 128, 10));
  EXPECT_EQ(trials[0].lr, 0.1);
  EXPECT_EQ(trials[0].batch, 32);
  EXPECT_EQ(trials[0].seed, 1u);
  EXPECT_THAT(VariedFlags(trials), IsEmpty());
}

TEST(SearchSpaceTest, InAGridTheSeedChangesFastestAndTheShapeSlowest) {
  SearchSpace space;
  space.hidden = {{}, {64, 32}};
  space.lr = Axis("0.1,1");
  space.seeds = 2;
  const std::vector<Trial> trials = Grid(space);
  ASSERT_THAT(trials, SizeIs(8));
  EXPECT_THAT(LearningRates(trials),
              ElementsAre(0.1, 0.1, 1, 1, 0.1, 0.1, 1, 1));
  for (size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].index, static_cast<int64_t>(i));
    EXPECT_EQ(trials[i].seed, 1 + i % 2);
    EXPECT_EQ(trials[i].model.ToString(), i < 4 ? "784-10" : "784-64-32-10");
  }
  EXPECT_THAT(VariedFlags(trials), ElementsAre("hidden", "lr", "seed"));
}

TEST(SearchSpaceTest, MomentumIsTriedOnlyWhereThereIsMomentum) {
  SearchSpace space;
  space.optimizer = {OptimizerKind::kSgd, OptimizerKind::kMomentum};
  space.momentum = Axis("0.5,0.9");
  space.seeds = 2;
  EXPECT_THAT(Grid(space), SizeIs(2 + 2 * 2));
}

TEST(SearchSpaceTest, AGridWantsPointsOfARange) {
  SearchSpace space;
  space.lr = Axis("log:1e-4..1");
  EXPECT_THAT(GridTrials(space, Base()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--lr: want a number of points, "
                                 "log:1e-04..1:5, or --trials N to draw")));
}

TEST(SearchSpaceTest, RefusesMoreTrialsThanAnyoneWants) {
  SearchSpace space;
  space.seeds = kMaxTrials + 1;
  EXPECT_THAT(GridTrials(space, Base()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want at most 100000 trials")));
}

TEST(SearchSpaceTest, RefusesWidthsThatAreNoModel) {
  SearchSpace space;
  space.hidden = {{1 << 24, 1 << 24}};
  EXPECT_THAT(GridTrials(space, Base()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--hidden: want")));
}

TEST(SearchSpaceTest, DrawsAreWithinTheRangeAndSpreadByItsScale) {
  SearchSpace space;
  space.lr = Axis("log:1e-4..1");
  ASSERT_OK_AND_ASSIGN(const std::vector<Trial> trials,
                       DrawTrials(space, Base(), 1000));
  int below = 0;
  for (const Trial& trial : trials) {
    EXPECT_THAT(trial.lr, AllOf(Ge(1e-4), Le(1)));
    below += trial.lr < 1e-2;
  }
  EXPECT_NEAR(below, 500, 80);  // five standard deviations of 16
}

TEST(SearchSpaceTest, DrawsRepeatAndFewerAreTheFirstOfMore) {
  SearchSpace space;
  space.lr = Axis("lin:0..1");
  space.optimizer = {OptimizerKind::kMomentum, OptimizerKind::kAdam};
  ASSERT_OK_AND_ASSIGN(const std::vector<Trial> ten,
                       DrawTrials(space, Base(), 10));
  ASSERT_OK_AND_ASSIGN(std::vector<Trial> more, DrawTrials(space, Base(), 20));
  more.resize(10);
  EXPECT_EQ(LearningRates(ten), LearningRates(more));
  Trial other = Base();
  other.seed = 2;
  ASSERT_OK_AND_ASSIGN(const std::vector<Trial> others,
                       DrawTrials(space, other, 10));
  EXPECT_NE(LearningRates(ten), LearningRates(others));
}

TEST(SearchSpaceTest, DrawsDifferUntilThereAreNoMore) {
  SearchSpace space;
  space.lr = Axis("0.1,0.2,0.3,0.4,0.5");
  space.seeds = 3;
  ASSERT_OK_AND_ASSIGN(const std::vector<Trial> trials,
                       DrawTrials(space, Base(), 15));
  std::set<std::pair<double, uint64_t>> different;
  for (const Trial& trial : trials) different.insert({trial.lr, trial.seed});
  EXPECT_THAT(different, SizeIs(15));
  EXPECT_THAT(DrawTrials(space, Base(), 16),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--trials: want at most 15")));
}

TEST(SearchSpaceTest, TheTextIsWhatTheFlagsSay) {
  SearchSpace space;
  space.hidden = {{}, {128, 64}};
  space.lr = Axis("log:1e-3..1:4");
  space.weight_decay = Axis("lin:0..0.5");
  EXPECT_THAT(SpaceText(space),
              ElementsAre(testing::Pair("hidden", "none,128-64"),
                          testing::Pair("batch", "32"),
                          testing::Pair("optimizer", "sgd"),
                          testing::Pair("activation", "relu"),
                          testing::Pair("lr", "0.001,0.01,0.1,1"),
                          testing::Pair("momentum", "0.9"),
                          testing::Pair("weight-decay", "lin:0..0.5"),
                          testing::Pair("seeds", "1")));
}

}  // namespace
}  // namespace onestep
