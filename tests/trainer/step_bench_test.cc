// SPDX-License-Identifier: Apache-2.0
#include "trainer/step_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/status_matchers.h"
#include "trainer/commands/commands.h"
#include "trainer/peak.h"

namespace onestep {
namespace {

Config Small() {
  Config config;
  config.verb = Verb::kBench;
  config.model.widths = {20, 16, 4};
  config.batches = {8, 3};
  config.samples = 3;
  config.json = true;
  return config;
}

void CheckTimes(const StepTimes& times) {
  EXPECT_GT(times.p5_us, 0);
  EXPECT_LE(times.p5_us, times.median_us);
  EXPECT_LE(times.median_us, times.p95_us);
  EXPECT_GT(times.dispatches, 0);
}

TEST(StepBenchTest, TimesAllWays) {
  const Config config = Small();
  const Dataset data = BenchRows(config.model, 8);
  std::vector<std::string> said;
  ASSERT_OK_AND_ASSIGN(const BenchRow row,
                       BenchStep(config, data, 8, [&](const std::string& text) {
                         said.push_back(text);
                       }));
  EXPECT_EQ(row.batch, 8);
  ASSERT_EQ(row.ways.size(), 5u);
  for (const WayResult& way : row.ways) {
    SCOPED_TRACE(way.name);
    CheckTimes(way.times);
    EXPECT_DOUBLE_EQ(way.ratio.value,
                     way.times.median_us / row.Way("fused").times.median_us);
    EXPECT_LE(way.ratio.low, way.ratio.high);
    EXPECT_GT(way.gflops, 0);
    EXPECT_LT(way.gflops, row.peak_gflops);
  }
  EXPECT_EQ(row.Way("unfused").times.dispatches,
            row.Way("loops").times.dispatches);
  EXPECT_LT(row.Way("fused").times.dispatches,
            row.Way("unfused").times.dispatches);
  EXPECT_EQ(row.Way("single").times.dispatches, 1);
  EXPECT_THAT(row.refused, testing::IsEmpty());
  EXPECT_LE(row.loss_difference, LossTolerance(config));
  EXPECT_EQ(said.back(), "sample 3 of 3");
}

TEST(StepBenchTest, EveryOptimizerHasTheSameLossesAllWays) {
  Config config = Small();
  config.samples = 1;
  const Dataset data = BenchRows(config.model, 8);
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam,
        OptimizerKind::kAdamW}) {
    config.optimizer.kind = kind;
    EXPECT_OK(BenchStep(config, data, 8, [](const std::string&) {}));
  }
}

TEST(StepBenchTest, RowsAreAtLeastTheBatch) {
  const ModelSpec wide = {{1 << 22, 2}};
  EXPECT_EQ(BenchRows(wide, 20).rows, 20);
}

TEST(PeakProbeTest, FindsARate) {
  PeakProbe peak(1);
  EXPECT_EQ(peak.best_gflops(), 0);
  peak.Sample();
  EXPECT_GT(peak.best_gflops(), 0.1);
}

TEST(BenchCommandTest, JsonHasTheDocumentedKeys) {
  Console console;
  testing::internal::CaptureStdout();
  ASSERT_OK(RunBench(Small(), console));
  console.Flush();
  const auto json =
      nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_GT(json.at("peak_gflops"), 0);
  EXPECT_EQ(json.at("threads"), 1);
  ASSERT_EQ(json.at("rows").size(), 2u);
  for (const auto& row : json["rows"]) {
    for (const char* way :
         {"unfused", "loops", "fused", "single", "single_sparse"}) {
      for (const char* key :
           {"_us", "_p5_us", "_p95_us", "_ratio", "_ratio_low", "_ratio_high",
            "_gflops", "_peak_share"}) {
        const std::string name = absl::StrCat(way, key);
        EXPECT_TRUE(row.contains(name) && row[name].is_number()) << name;
      }
      EXPECT_TRUE(row.contains(absl::StrCat("dispatches_", way)));
    }
  }
  EXPECT_EQ(json["rows"][1]["batch"], 3);
}

}  // namespace
}  // namespace onestep
