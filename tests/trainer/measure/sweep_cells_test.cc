// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/interrupt.h"
#include "trainer/measure/sweep.h"

namespace onestep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Small {
  Config config;
  TrainingData data;
};

Small MakeSmall() {
  Small small;
  small.data.train = RandomRows(120, 20, 4, /*seed=*/1);
  small.data.split = {100, 20};
  small.config.model.widths = {20, 16, 4};
  small.config.epochs = 1;
  small.config.batches = {8, 32};
  small.config.compile.threads = 1;
  return small;
}

std::vector<std::string> Approaches(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const SweepCell& cell : sweep.cells) names.push_back(cell.approach);
  return names;
}

void Ignore(const std::string&) {}

TEST(RunSweepCellsTest, EveryBatchHasEveryWayTimedAndTrained) {
  const Small small = MakeSmall();
  const auto sweep = RunSweepCells(small.config, small.data, Ignore);
  ASSERT_OK(sweep);
  EXPECT_THAT(Approaches(*sweep),
              ElementsAre("cpu ops", "cpu single", "cpu single sparse",
                          "cpu ops", "cpu single", "cpu single sparse"));
  for (const SweepCell& cell : sweep->cells) {
    EXPECT_EQ(cell.refused, "");
    EXPECT_GT(cell.us_per_step, 0);
    EXPECT_GT(cell.seconds_per_epoch, 0);
    ASSERT_TRUE(cell.mfu);
    EXPECT_GT(*cell.mfu, 0);
    EXPECT_LT(*cell.mfu, 1.1);
    ASSERT_TRUE(cell.validation_accuracy);
    EXPECT_GE(*cell.validation_accuracy, 0);
    EXPECT_LE(*cell.validation_accuracy, 1);
  }
  EXPECT_EQ(sweep->rows, 100);
}

TEST(RunSweepCellsTest, WhatCannotRunSaysWhyAndTheRestRuns) {
  Small small = MakeSmall();
  small.config.batches = {8, 101};
  small.config.dispatches = {Dispatch::kGraph, Dispatch::kOps};
  small.config.input = InputMode::kDense;
  const auto sweep = RunSweepCells(small.config, small.data, Ignore);
  ASSERT_OK(sweep);
  EXPECT_THAT(sweep->cells[0].refused, HasSubstr("dispatch graph on device"));
  EXPECT_EQ(sweep->cells[1].refused, "");
  EXPECT_THAT(sweep->cells[3].refused, HasSubstr("want at most 100 rows"));
}

TEST(RunSweepCellsTest, WithoutValidationRowsThereIsNoAccuracy) {
  Small small = MakeSmall();
  small.data.split = {120, 0};
  small.config.batches = {8};
  small.config.dispatches = {Dispatch::kOps};
  const auto sweep = RunSweepCells(small.config, small.data, Ignore);
  ASSERT_OK(sweep);
  EXPECT_FALSE(sweep->cells[0].validation_accuracy);
  EXPECT_GT(sweep->cells[0].seconds_per_epoch, 0);
}

TEST(RunSweepCellsTest, AWayThatDivergesIsTimedAndNoted) {
  Small small = MakeSmall();
  small.config.batches = {8};
  small.config.lr = 1e30;
  small.config.dispatches = {Dispatch::kOps};
  const auto sweep = RunSweepCells(small.config, small.data, Ignore);
  ASSERT_OK(sweep);
  EXPECT_FALSE(sweep->cells[0].validation_accuracy);
  EXPECT_GT(sweep->cells[0].seconds_per_epoch, 0);
  EXPECT_THAT(sweep->note, HasSubstr("cpu ops, batch 8: diverged"));
}

TEST(RunSweepCellsDeathTest, ASignalLeavesWhatWasMeasured) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leaves_the_first_batch = [] {
    CatchSignals();
    Small small = MakeSmall();
    small.config.dispatches = {Dispatch::kOps};
    small.config.input = InputMode::kDense;
    const auto sweep = RunSweepCells(
        small.config, small.data, [&](const std::string& progress) {
          if (progress == "batch 32: train cpu ops") std::raise(SIGINT);
        });
    return sweep.ok() && sweep->interrupted && sweep->cells.size() == 1 &&
           sweep->cells[0].batch == 8 && sweep->cells[0].mfu > 0;
  };
  EXPECT_EXIT(std::exit(leaves_the_first_batch() ? 0 : 1),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace onestep
