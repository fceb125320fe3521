// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "trainer/measure/calibrate.h"

namespace onestep {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// One calibration for all tests, on one thread: with more, whatever else runs
// here has threads wait for each other.
class AdviseTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("ONESTEP_CACHE", Folder().c_str(), /*overwrite=*/1);
    std::filesystem::remove_all(Folder());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(Folder()); }
  static std::string Folder() { return ::testing::TempDir() + "advise_test"; }

  AdviseTest() {
    config_.model.widths = {64, 32, 10};
    config_.batch = 8;
    config_.rows = 2000;
    config_.density = 0.2;
    config_.threads_auto = false;
    config_.compile.threads = 1;
  }

  absl::StatusOr<Advice> Run(bool batch_given) {
    said_.clear();
    return Advise(
        config_, batch_given,
        [this](const std::string& text) { said_.push_back(text); },
        [] { return CoreWaits(); });  // where nothing else runs
  }

  Config config_;
  std::vector<std::string> said_;
};

TEST_F(AdviseTest, EstimatesAreWithinAFactorOfTwoOfWhatIsMeasured) {
  config_.check = true;
  for (const auto& [widths, batch] :
       std::vector<std::pair<std::vector<int64_t>, int64_t>>{
           {{64, 32, 10}, 8}, {{300, 128, 10}, 64}}) {
    config_.model.widths = widths;
    config_.batch = batch;
    const auto advice = Run(/*batch_given=*/true);
    ASSERT_OK(advice);
    ASSERT_EQ(advice->ways.size(), 4);  // ops, single; dense, sparse
    for (const AdvisedWay& way : advice->ways) {
      ASSERT_TRUE(way.measured_us);
      EXPECT_GT(way.cost.us, *way.measured_us / 2) << way.Flags();
      EXPECT_LT(way.cost.us, *way.measured_us * 2) << way.Flags();
    }
  }
}

TEST_F(AdviseTest, CalibratesOnceAndNeverOnTheModelItself) {
  ASSERT_OK(Run(/*batch_given=*/true));
  EXPECT_TRUE(std::filesystem::exists(Folder() + "/costs.json"));
  ASSERT_OK(Run(/*batch_given=*/true));
  EXPECT_THAT(said_, Each(Not(StartsWith("calibrate"))));
  for (const CalibrationStep& step : CalibrationSteps()) {
    EXPECT_NE(step.widths, config_.model.widths);
  }
}

TEST_F(AdviseTest, ThePartsAddUpToTheStep) {
  const auto advice = Run(/*batch_given=*/true);
  ASSERT_OK(advice);
  for (const AdvisedWay& way : advice->ways) {
    const StepCost& cost = way.cost;
    EXPECT_NEAR(
        cost.compute_us + cost.memory_us + cost.launch_us + cost.transfer_us,
        cost.us, 1e-9 * cost.us);
    EXPECT_FALSE(way.measured_us);
  }
}

TEST_F(AdviseTest, WithoutABatchTheSmallestNearTheShortestEpochIsAdvised) {
  const auto advice = Run(/*batch_given=*/false);
  ASSERT_OK(advice);
  EXPECT_EQ(advice->batches.size(), 8);  // 8 to 1024 of 1600 train rows
  double shortest = advice->batches[0].epoch_seconds;
  for (const AdvisedWay& way : advice->batches) {
    shortest = std::min(shortest, way.epoch_seconds);
  }
  const double limit = (1 + kBatchTolerance) * shortest;
  EXPECT_LE(advice->ways[0].epoch_seconds, limit);
  for (const AdvisedWay& way : advice->batches) {
    if (way.batch >= advice->ways[0].batch) break;
    EXPECT_GT(way.epoch_seconds, limit) << way.batch;
  }
}

TEST_F(AdviseTest, ADenseInputIsNotAdvisedSparse) {
  config_.density = 0.9;
  const auto advice = Run(/*batch_given=*/true);
  ASSERT_OK(advice);
  EXPECT_EQ(advice->ways.size(), 2);
}

TEST_F(AdviseTest, MoreRowsThanThereAreIsRefused) {
  config_.batch = 2001;
  EXPECT_THAT(Run(/*batch_given=*/true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--batch: want at most 2000")));
}

TEST_F(AdviseTest, TextAndJsonHaveTheFlagsThatReproduceIt) {
  const auto advice = Run(/*batch_given=*/true);
  ASSERT_OK(advice);
  const std::string flags = advice->ways[0].Flags();
  EXPECT_THAT(ToText(config_, *advice),
              HasSubstr("trainer --model 64-32-10 " + flags + "\n"));
  const auto json = ToJson(config_, *advice);
  EXPECT_EQ(json["advised"]["flags"], flags);
  EXPECT_TRUE(json["advised"]["measured_us"].is_null());
  EXPECT_GT(json["memory"]["total_bytes"], 2000 * 64);
}

TEST_F(AdviseTest, WithoutAFolderNothingIsSaidToBeKept) {
  Advice advice;
  advice.ways.emplace_back();
  EXPECT_THAT(ToText(config_, advice), HasSubstr(" and kept in "));
  const std::string home = getenv("HOME"), cache = getenv("ONESTEP_CACHE");
  for (const char* name : {"HOME", "ONESTEP_CACHE", "XDG_CACHE_HOME"}) {
    unsetenv(name);
  }
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(ToText(config_, advice), HasSubstr("timed here in 0.0 s\n"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  setenv("HOME", home.c_str(), 1);
  setenv("ONESTEP_CACHE", cache.c_str(), 1);
}

}  // namespace
}  // namespace onestep
