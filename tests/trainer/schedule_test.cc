// SPDX-License-Identifier: Apache-2.0
#include "trainer/schedule.h"

#include <gtest/gtest.h>

namespace onestep {
namespace {

TEST(ScheduleTest, ConstantStaysAtItsRate) {
  const Schedule schedule = {ScheduleKind::kConstant, 0.5, 0, 100};
  for (int step : {0, 1, 50, 99}) EXPECT_EQ(LearningRate(schedule, step), 0.5);
}

TEST(ScheduleTest, WarmupRisesLinearlyToTheRateInItsLastStep) {
  for (const ScheduleKind kind :
       {ScheduleKind::kConstant, ScheduleKind::kCosine, ScheduleKind::kStep}) {
    const Schedule schedule = {kind, 0.8, 4, 100};
    EXPECT_DOUBLE_EQ(LearningRate(schedule, 0), 0.2);
    EXPECT_DOUBLE_EQ(LearningRate(schedule, 1), 0.4);
    EXPECT_DOUBLE_EQ(LearningRate(schedule, 2), 0.6);
    EXPECT_DOUBLE_EQ(LearningRate(schedule, 3), 0.8);
    EXPECT_DOUBLE_EQ(LearningRate(schedule, 4), 0.8);
  }
}

TEST(ScheduleTest, CosineFallsFromTheRateToZeroOverWhatIsLeft) {
  const Schedule schedule = {ScheduleKind::kCosine, 1.0, 20, 100};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 20), 1.0);
  EXPECT_NEAR(LearningRate(schedule, 60), 0.5, 1e-12);
  EXPECT_NEAR(LearningRate(schedule, 99), 0.000385, 1e-6);
  EXPECT_EQ(LearningRate(schedule, 100), 0);
  for (int step = 21; step < 100; ++step) {
    EXPECT_LT(LearningRate(schedule, step), LearningRate(schedule, step - 1));
  }
}

TEST(ScheduleTest, StepDropsToATenthAtTheHalfAndAgainAtThreeQuarters) {
  const Schedule schedule = {ScheduleKind::kStep, 1.0, 0, 100};
  EXPECT_EQ(LearningRate(schedule, 49), 1.0);
  EXPECT_EQ(LearningRate(schedule, 50), 0.1);
  EXPECT_EQ(LearningRate(schedule, 74), 0.1);
  EXPECT_EQ(LearningRate(schedule, 75), 0.01);
}

TEST(ScheduleTest, AWarmupLongerThanTheRunNeverReachesTheRate) {
  const Schedule schedule = {ScheduleKind::kCosine, 1.0, 1000, 100};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 99), 0.1);
}

}  // namespace
}  // namespace onestep
