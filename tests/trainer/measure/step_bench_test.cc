// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/step_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/status_matchers.h"
#include "trainer/commands/commands.h"
#include "trainer/measure/bench_run.h"
#include "trainer/measure/peak.h"

namespace onestep {
namespace {

Config Small() {
  Config config;
  config.verb = Verb::kBench;
  config.model.widths = {20, 16, 4};
  config.batches = {8, 3};
  config.samples = 3;
  config.processes = 1;
  config.json = true;
  return config;
}

void CheckTimes(const WayResult& way) {
  ASSERT_EQ(way.us.size(), 1u);
  ASSERT_EQ(way.us[0].size(), 3u);
  EXPECT_GT(Percentile(way.us[0], 0), 0);
  ASSERT_EQ(way.compile_ms.size(), 1u);
  EXPECT_GT(way.compile_ms[0], 0);
  ASSERT_EQ(way.first_step_ms.size(), 1u);
  EXPECT_GT(way.first_step_ms[0], 0);
  EXPECT_THAT(way.synced_us, testing::IsEmpty());
  EXPECT_GT(way.dispatches, 0);
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
    CheckTimes(way);
    const WayFigures figures = FiguresOf(config.model, row, way);
    EXPECT_LE(figures.p5_us, figures.median_us);
    EXPECT_LE(figures.median_us, figures.p95_us);
    EXPECT_LE(figures.ratio.low, figures.ratio.high);
    EXPECT_STREQ(figures.verdict, "too few samples");
    EXPECT_LT(figures.gflops, row.peak_gflops);
  }
  EXPECT_EQ(row.Way("unfused").dispatches, row.Way("loops").dispatches);
  EXPECT_LT(row.Way("fused").dispatches, row.Way("unfused").dispatches);
  EXPECT_EQ(row.Way("single").dispatches, 1);
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
            "_gflops", "_peak_share", "_compile_ms", "_first_step_ms"}) {
        const std::string name = absl::StrCat(way, key);
        EXPECT_TRUE(row.contains(name) && row[name].is_number()) << name;
      }
      EXPECT_TRUE(row.contains(absl::StrCat("dispatches_", way)));
      EXPECT_EQ(row.at(absl::StrCat(way, "_verdict")), "too few samples");
    }
  }
  EXPECT_EQ(json["rows"][1]["batch"], 3);
}

}  // namespace
}  // namespace onestep
