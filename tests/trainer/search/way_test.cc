// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/way.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/status_matchers.h"
#include "trainer/data/nonzeros.h"
#include "trainer/data/random_rows.h"
#include "trainer/data/split.h"

namespace onestep {
namespace {

using testing::ElementsAre;

constexpr Way kVector = {true, false};

TEST(BundleSizesTest, ALoopHasOneTrialInEach) {
  EXPECT_THAT(BundleSizes(Way(), 3, 2, 32), ElementsAre(1, 1, 1));
}

TEST(BundleSizesTest, VectorsAreAsManyAsAMultipleOfTheWorkers) {
  EXPECT_THAT(BundleSizes(kVector, 16, 2, 32), ElementsAre(8, 8));
  EXPECT_THAT(BundleSizes(kVector, 17, 2, 32), ElementsAre(9, 8));
  EXPECT_THAT(BundleSizes(kVector, 70, 2, 32), ElementsAre(18, 18, 17, 17));
  EXPECT_THAT(BundleSizes(kVector, 64, 3, 32), ElementsAre(22, 21, 21));
}

TEST(BundleSizesTest, VectorsOfFewTrialsHaveTwoAtLeast) {
  EXPECT_THAT(BundleSizes(kVector, 1, 4, 32), ElementsAre(1));
  EXPECT_THAT(BundleSizes(kVector, 3, 4, 32), ElementsAre(3));
  EXPECT_THAT(BundleSizes(kVector, 5, 4, 32), ElementsAre(3, 2));
}

TEST(BundleSizesTest, OneWorkerHasTheFewestThatHoldAll) {
  EXPECT_THAT(BundleSizes(kVector, 32, 1, 32), ElementsAre(32));
  EXPECT_THAT(BundleSizes(kVector, 33, 1, 32), ElementsAre(17, 16));
}

TEST(LikelyVectorTest, IsOfModelsOfWhichManyFitTheCache) {
  EXPECT_TRUE(LikelyVector(4 << 10));
  EXPECT_FALSE(LikelyVector(16 << 20));
}

// What was timed and not chosen is not kept, nor programs that no bundle needs.
TEST(ChooseWayTest, LeavesTheProgramsOfTheWayItChose) {
  const Dataset data = RandomRows(40, 6, 3, /*seed=*/1);
  const RowPlan plan = {40, 0};
  const RowOrder order = {EpochOrder(40, 1, 0), {}};
  CompileOptions compile;
  compile.dispatch = Dispatch::kSingle;
  compile.kernels = Kernels::kLoops;
  ProgramPool pool(compile, CountNonzeros(data), data, plan, order);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team, Team::Create(3, {}));
  TrialState state;
  state.trial.model.widths = {6, 4, 3};
  ASSERT_OK_AND_ASSIGN(state.params,
                       InitParams(state.trial.model, Init::kHe, 1));
  WayTiming timing = {pool, *team, plan};
  timing.round_us = 100;
  timing.alone = false;  // all three workers are timed
  ASSERT_OK_AND_ASSIGN(
      const WayChoice choice,
      ChooseWay(timing, {{false, false}, {false, true}}, {&state}));
  EXPECT_GT(choice.loop_us, 0);
  EXPECT_EQ(pool.sets(), 1);
  ASSERT_OK_AND_ASSIGN(ProgramSet* const set,
                       pool.Get(state.trial, 1, choice.way.sparse));
  EXPECT_EQ(pool.sets(), 1);
  EXPECT_EQ(set->programs(), 1);
}

}  // namespace
}  // namespace onestep
