// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/bench_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/trainer/measure/made_bench_run.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class BenchCompareTest : public testing::Test {
 protected:
  // Keeps `run` as an earlier one, and asks for the comparison with it.
  Config Keep(const BenchRun& run) {
    Config config = MadeConfig();
    config.compare_file = folder_.path() + "/then.json";
    std::ofstream(config.compare_file) << BenchToJson(config, run);
    return config;
  }
  BenchComparison Compare(const BenchRun& then, const BenchRun& now,
                          double gate) {
    const absl::StatusOr<EarlierRun> read = ReadEarlierRun(Keep(then));
    EXPECT_OK(read);
    const absl::StatusOr<BenchComparison> comparison =
        CompareBench(*read, now, gate);
    EXPECT_OK(comparison);
    return *comparison;
  }

  const TempFolder folder_;
};

TEST_F(BenchCompareTest, WhatIsSurelySlowerFailsTheGate) {
  const BenchComparison comparison =
      Compare(MadeRun(10, 10), MadeRun(10, 11), 0.05);
  ASSERT_EQ(comparison.ways.size(), 2u);
  EXPECT_STREQ(comparison.ways[0].verdict, "no measurable difference");
  EXPECT_NEAR(comparison.ways[1].ratio.value, 1.1, 1e-9);
  EXPECT_STREQ(comparison.ways[1].verdict, "slower");
  EXPECT_THAT(GateStatus(comparison),
              StatusIs(StatusCode::kAborted,
                       AllOf(HasSubstr("--gate 5%: want at most 1.05 of"),
                             HasSubstr("batch 32 single 1.100 (1."),
                             Not(HasSubstr("fused")))));
  EXPECT_THAT(ToText(comparison), HasSubstr("slower, FAILS\n"));
  const auto json = ToJson(comparison);
  EXPECT_EQ(json.at("passed"), false);
  EXPECT_EQ(json.at("rows")[0].at("passed"), true);
  EXPECT_EQ(json.at("rows")[1].at("passed"), false);
}

TEST_F(BenchCompareTest, SlowerThanTheGateAllowsIsNotFasterNorUnsure) {
  EXPECT_OK(GateStatus(Compare(MadeRun(10, 11), MadeRun(10, 10), 0.05)));
  EXPECT_OK(GateStatus(Compare(MadeRun(10, 10), MadeRun(10, 10.4), 0.05)));
  EXPECT_OK(GateStatus(Compare(MadeRun(10, 10), MadeRun(10, 11), 0)));
  BenchRun unsure = MadeRun(10, 11);
  unsure.rows[0].ways[1].us[0] = std::vector<double>(10, 10.0);
  EXPECT_OK(GateStatus(Compare(MadeRun(10, 10), unsure, 0.05)));
}

TEST_F(BenchCompareTest, ASlowerClockIsNoRegression) {
  BenchRun now = MadeRun(11, 11);
  now.rows[0].peak_gflops = 100 / 1.1;
  const BenchComparison comparison = Compare(MadeRun(10, 10), now, 0.05);
  EXPECT_NEAR(comparison.ways[0].raw.value, 1.1, 1e-9);
  EXPECT_NEAR(comparison.ways[0].ratio.value, 1, 1e-9);
  EXPECT_OK(GateStatus(comparison));
  EXPECT_THAT(ToText(comparison), HasSubstr("machine is not what it was"));
}

TEST_F(BenchCompareTest, WithoutAPeakTheTimesAreComparedAsMeasured) {
  BenchRun then = MadeRun(10, 10), now = MadeRun(11, 11);
  then.rows[0].peak_gflops = now.rows[0].peak_gflops = 0;
  ASSERT_OK_AND_ASSIGN(const BenchComparison comparison,
                       CompareBench({"then.json", then}, now, 0));
  EXPECT_NEAR(comparison.ways[0].ratio.value, 1.1, 1e-9);
}

TEST_F(BenchCompareTest, AWayThatIsGoneFailsTheGate) {
  BenchRun now = MadeRun(10, 10);
  now.rows[0].ways.pop_back();
  const BenchComparison comparison = Compare(MadeRun(10, 10), now, 0.05);
  EXPECT_THAT(comparison.missing, ElementsAre("batch 32 single"));
  EXPECT_THAT(
      GateStatus(comparison),
      StatusIs(StatusCode::kAborted, HasSubstr("batch 32 single not run")));
}

TEST_F(BenchCompareTest, WhatTheFileLacksIsSaidAndFailsTheGate) {
  BenchRun then = MadeRun(10, 10), now = MadeRun(10, 10);
  then.rows[0].ways.pop_back();
  now.rows.push_back(MadeRow(64, 10, 10));
  const BenchComparison comparison = Compare(then, now, 0);
  EXPECT_THAT(comparison.added, ElementsAre("batch 32 single", "batch 64"));
  EXPECT_EQ(ToJson(comparison).at("added").size(), 2u);
  EXPECT_THAT(ToText(comparison),
              AllOf(HasSubstr("\nbatch 32 single: not in " + comparison.file),
                    HasSubstr("\nbatch 64: not in ")));
  EXPECT_OK(GateStatus(comparison));
  EXPECT_THAT(GateStatus(Compare(then, now, 0.05)),
              StatusIs(StatusCode::kAborted,
                       HasSubstr("batch 32 single not in it, batch 64 not")));
}

TEST_F(BenchCompareTest, AGateWantsEachBatchInTheFile) {
  Config config = Keep(MadeRun(10, 10));
  config.batches = {32, 64};
  EXPECT_OK(ReadEarlierRun(config));
  config.gate = 0.05;
  EXPECT_THAT(ReadEarlierRun(config), StatusIs(StatusCode::kInvalidArgument,
                                               HasSubstr("then.json, got 64")));
}

TEST_F(BenchCompareTest, OtherSettingsAreRefused) {
  const Config kept = Keep(MadeRun(10, 10));
  const auto expect = [&kept](auto change, const std::string& error) {
    Config config = kept;
    change(config);
    EXPECT_THAT(ReadEarlierRun(config),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(error)));
  };
  expect(
      [](Config& c) {
        c.model.widths = {20, 8, 4};
      },
      "want model \"20-16-4\" as in it, got \"20-8-4\"");
  expect([](Config& c) { c.compile.threads = 3; },
         "want threads 1 as in it, got 3");
  expect([](Config& c) { c.optimizer.weight_decay = 0.1f; },
         "want weight_decay 0.0 as in it, got 0.1");
  expect([](Config& c) { c.optimizer.momentum = 0.5f; },
         "want momentum 0.9 as in it, got 0.5");
  expect([](Config& c) { c.optimizer.nesterov = true; },
         "want nesterov false as in it, got true");
  expect([](Config& c) { c.compile.device = Device::kGpu; },
         "want device \"cpu\" as in it, got \"gpu\"");
  expect(
      [](Config& c) {
        c.batches = {33, 34};
      },
      "want one of its batches, got 33,34");
}

TEST_F(BenchCompareTest, AnotherCpuIsRefused) {
  BenchRun then = MadeRun(10, 10);
  then.environment.cpu = "Abacus 9";
  EXPECT_THAT(ReadEarlierRun(Keep(then)),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("want cpu \"Abacus 9\" as in it, got ")));
}

// Virtual machines name CPUs of several generations alike.
TEST_F(BenchCompareTest, AnotherInstructionSetIsRefused) {
  const Config config = Keep(MadeRun(10, 10));
  auto json = BenchToJson(config, MadeRun(10, 10));
  json["isa"] = "abacus";
  std::ofstream(config.compare_file) << json;
  EXPECT_THAT(ReadEarlierRun(config),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("want isa \"abacus\" as in it, got ")));
}

TEST_F(BenchCompareTest, OtherGpuSettingsAreRefused) {
  Config config = MadeConfig();
  config.compile.device = Device::kGpu;
  const auto then = SettingsToJson(config);
  config.compile.cuda.steps_per_launch = 8;
  config.compile.cuda.table_limit_bytes = 1 << 20;
  const auto now = SettingsToJson(config);
  EXPECT_NE(now["steps_per_launch"], then["steps_per_launch"]);
  EXPECT_NE(now["device_data"], then["device_data"]);
}

TEST_F(BenchCompareTest, OtherDataIsRefused) {
  ASSERT_OK_AND_ASSIGN(const EarlierRun then,
                       ReadEarlierRun(Keep(MadeRun(10, 10))));
  BenchRun now = MadeRun(10, 10);
  now.density = 0.3;
  EXPECT_THAT(
      CompareBench(then, now, 0),
      StatusIs(StatusCode::kInvalidArgument,
               HasSubstr("a share of 0.200 not 0 as in it, got 0.300")));
}

TEST_F(BenchCompareTest, FewSamplesHaveNoVerdictAndNoInterval) {
  const std::string text =
      ToText(Compare(MadeRun(10, 10), MadeRun(10, 11, /*starts=*/2), 0));
  EXPECT_THAT(text, HasSubstr(" 1.100 "));
  EXPECT_THAT(text, HasSubstr(" too few samples\n"));
  EXPECT_THAT(text, Not(HasSubstr("1.100 (")));
}

TEST_F(BenchCompareTest, AGateWantsEnoughSamplesNowAndThen) {
  Config config = Keep(MadeRun(10, 10));
  config.gate = 0.05;
  EXPECT_OK(ReadEarlierRun(config));
  config.samples = 29;
  EXPECT_THAT(
      ReadEarlierRun(config),
      StatusIs(StatusCode::kInvalidArgument,
               HasSubstr("--gate: want --samples 30 and --processes 3 ")));
  config = Keep(MadeRun(10, 10, /*starts=*/2));
  EXPECT_OK(ReadEarlierRun(config));
  config.gate = 0.05;
  EXPECT_THAT(ReadEarlierRun(config),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("then.json, got fewer at batch 32")));
}

TEST_F(BenchCompareTest, AFileThatIsMissingOrNoneOfOursIsSaid) {
  Config config = MadeConfig();
  config.compare_file = folder_.path() + "/a.json";
  EXPECT_THAT(ReadEarlierRun(config),
              StatusIs(StatusCode::kNotFound, HasSubstr("a.json: cannot ")));
  config.compare_file = std::string(300, 'a');
  EXPECT_THAT(ReadEarlierRun(config),
              StatusIs(StatusCode::kNotFound, HasSubstr("File name too long")));
  config.compare_file = folder_.path() + "/a.json";
  std::ofstream(config.compare_file) << "{";
  EXPECT_THAT(ReadEarlierRun(config),
              StatusIs(StatusCode::kDataLoss, HasSubstr("got no JSON")));
}

}  // namespace
}  // namespace onestep
