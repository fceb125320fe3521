// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace onestep {
namespace {

class CalibrateTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONESTEP_CACHE", folder_.path().c_str(), /*overwrite=*/1);
    config_.threads_auto = false;
    config_.compile.threads = 1;
  }
  void TearDown() override { unsetenv("ONESTEP_CACHE"); }

  // `busy_ns`: that a core was waited for from look to look.
  absl::StatusOr<MachineCosts> Costs(int64_t busy_ns) {
    calibrated_ = false;
    return KeptCosts(
        config_, [this](const std::string&) { calibrated_ = true; },
        [this, busy_ns] {
          return CoreWaits{{"1", waited_ns_ += busy_ns}};
        },
        {{{10, 12, 3}, 1}});
  }

  const TempFolder folder_;
  Config config_;
  int64_t waited_ns_ = 0;
  bool calibrated_ = false;
};

TEST_F(CalibrateTest, WhatABusyMachineTookIsNotKept) {
  ASSERT_OK_AND_ASSIGN(MachineCosts costs, Costs(3600'000'000'000));
  EXPECT_TRUE(costs.busy);
  EXPECT_GT(costs.calls.points(), 0);
  ASSERT_OK_AND_ASSIGN(costs, Costs(0));
  EXPECT_TRUE(calibrated_);
  EXPECT_FALSE(costs.busy);
  ASSERT_OK_AND_ASSIGN(costs, Costs(0));
  EXPECT_FALSE(calibrated_);
}

}  // namespace
}  // namespace onestep
