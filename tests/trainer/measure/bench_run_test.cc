// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/bench_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/status_matchers.h"
#include "tests/trainer/measure/made_bench_run.h"
#include "trainer/measure/bench_starts.h"
#include "trainer/measure/bench_text.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(BenchRunTest, VerdictsNeedAnIntervalWithoutOneAndEnoughSamples) {
  EXPECT_STREQ(VerdictOf({0.9, 0.8, 0.99}, true), "faster");
  EXPECT_STREQ(VerdictOf({1.1, 1.01, 1.2}, true), "slower");
  EXPECT_STREQ(VerdictOf({1.1, 1, 1.2}, true), "no measurable difference");
  EXPECT_STREQ(VerdictOf({1.1, 1.01, 1.2}, false), "too few samples");
}

TEST(BenchRunTest, ThirtySamplesInThreeStartsAreEnough) {
  const std::vector<double> nine(9, 1.0), ten(10, 1.0), fifteen(15, 1.0);
  EXPECT_TRUE(EnoughFor({ten, ten, ten}));
  EXPECT_FALSE(EnoughFor({ten, ten, nine}));
  EXPECT_FALSE(EnoughFor({fifteen, fifteen}));
}

TEST(BenchRunTest, StartsOfABatchAreOneRow) {
  const BenchRow row = MadeRow(32, 10, 15, /*starts=*/1);
  BenchRow slower = MadeRow(32, 20, 40, /*starts=*/1);
  slower.peak_gflops = 200;
  slower.interrupted = 3;
  std::vector<BenchRow> rows;
  ASSERT_OK(AddStart(row, rows));
  ASSERT_OK(AddStart(MadeRow(64, 1, 1, /*starts=*/1), rows));
  ASSERT_OK(AddStart(slower, rows));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0].Way("single").us,
              ElementsAre(row.Way("single").us[0], slower.Way("single").us[0]));
  EXPECT_THAT(rows[0].Way("single").compile_ms, ElementsAre(2, 2));
  EXPECT_EQ(rows[0].peak_gflops, 200);
  EXPECT_EQ(rows[0].interrupted, 4);
}

TEST(BenchRunTest, AStartWithoutAWayIsRefused) {
  std::vector<BenchRow> rows = {MadeRow(32, 10, 15)};
  BenchRow start = MadeRow(32, 10, 15);
  start.ways.pop_back();
  start.refused = {"single: no room"};
  EXPECT_THAT(AddStart(start, rows), StatusIs(absl::StatusCode::kInternal,
                                              HasSubstr("bench: batch 32: ")));
}

TEST(BenchRunTest, JsonHasTheFiguresAndAllThatWasMeasured) {
  const BenchRun run = MadeRun(10, 15);
  const auto json = BenchToJson(MadeConfig(), run);
  EXPECT_EQ(json.at("processes"), 3);
  EXPECT_EQ(json.at("samples"), 30);
  const auto& row = json.at("rows")[0];
  EXPECT_NEAR(row.at("single_us").get<double>(), 15, 0.1);
  EXPECT_NEAR(row.at("single_ratio").get<double>(), 1.5, 1e-9);
  EXPECT_EQ(row.at("single_verdict"), "slower");
  EXPECT_EQ(row.at("fused_verdict"), "no measurable difference");
  EXPECT_EQ(row.at("single_compile_ms"), 2);
  EXPECT_EQ(row.at("single_first_step_ms"), 0.5);
  EXPECT_EQ(row.at("raw").at("single").at("us"), run.rows[0].Way("single").us);
}

TEST(BenchRunTest, JsonIsReadBackWhole) {
  BenchRun run = MadeRun(10, 15);
  run.rows[0].refused = {"single_sparse: no"};
  const auto json = BenchToJson(MadeConfig(), run);
  ASSERT_OK_AND_ASSIGN(BenchRun read, BenchFromJson(json, "it"));
  read.environment = run.environment;  // of which the CPU alone is read
  EXPECT_EQ(BenchToJson(MadeConfig(), read), json);
}

TEST(BenchRunTest, OtherJsonIsNotRead) {
  using Json = nlohmann::ordered_json;
  const Json json = BenchToJson(MadeConfig(), MadeRun(10, 15));
  Json no_time = json, no_peak = json;
  no_time["rows"][0]["raw"]["single"]["us"][1][2] = -1.0;
  no_peak["rows"][0]["peak_gflops"] = 0;
  for (const Json& wrong :
       {Json(), Json(3), Json::object(), no_time, no_peak}) {
    EXPECT_THAT(BenchFromJson(wrong, "a.json"),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("a.json: want the output of trainer ")));
  }
}

TEST(BenchRunTest, TextSaysWhereThereIsNoDifference) {
  const std::string equal = ToText(MadeConfig(), MadeRun(10, 10));
  EXPECT_THAT(equal, HasSubstr(" no measurable difference "));
  EXPECT_THAT(equal, Not(HasSubstr("no verdict")));
  EXPECT_THAT(equal, HasSubstr("single                  2.00          0.500"));
  const std::string slower = ToText(MadeConfig(), MadeRun(10, 15));
  EXPECT_THAT(slower, HasSubstr(" 1.500 (1.500 to 1.500) "));
}

TEST(BenchRunTest, TextOfFewSamplesHasNoVerdict) {
  const std::string text = ToText(MadeConfig(), MadeRun(10, 10, /*starts=*/2));
  EXPECT_THAT(text, HasSubstr("no verdict: want 30 samples in 3 process "));
  EXPECT_THAT(text, HasSubstr(" 1.000, too few samples "));
  EXPECT_THAT(text, Not(HasSubstr("no measurable difference")));
  EXPECT_THAT(text, Not(HasSubstr("1.000 (")));
}

TEST(BenchStartsTest, AStartHasOneBatchAndItsShareAndNoGate) {
  Config config = MadeConfig();
  config.arguments = {"bench",     "--json",      "--compare", "a.json",
                      "--gate=5%", "--batch",     "32,64",     "--gate",
                      "6%",        "--compare=b", "--model",   "8-4"};
  config.samples = 31;
  config.processes = 3;
  EXPECT_THAT(
      StartArguments(config, 64),
      ElementsAre("bench", "--json", "--batch", "32,64", "--model", "8-4",
                  "--json", "--processes=1", "--samples=11", "--batch=64"));
  config.samples = 2;
  EXPECT_THAT(StartArguments(config, 64), testing::Contains("--samples=2"));
}

}  // namespace
}  // namespace onestep
