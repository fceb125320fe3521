// SPDX-License-Identifier: Apache-2.0
#include "trainer/step_bench.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(StepBenchTest, TimesAllThreeWays) {
  const Config config = Small();
  const Dataset data = BenchRows(config.model, 8);
  std::vector<std::string> said;
  ASSERT_OK_AND_ASSIGN(const BenchRow row,
                       BenchStep(config, data, 8, [&](const std::string& text) {
                         said.push_back(text);
                       }));
  EXPECT_EQ(row.batch, 8);
  CheckTimes(row.unfused);
  CheckTimes(row.loops);
  CheckTimes(row.fused);
  EXPECT_EQ(row.unfused.dispatches, row.loops.dispatches);
  EXPECT_LT(row.fused.dispatches, row.unfused.dispatches);
  EXPECT_DOUBLE_EQ(row.ratio.value,
                   row.unfused.median_us / row.fused.median_us);
  EXPECT_LE(row.ratio.low, row.ratio.high);
  EXPECT_GT(row.gflops, 0);
  EXPECT_LT(row.gflops, row.peak_gflops);
  EXPECT_LE(row.loss_difference, kLossTolerance);
  EXPECT_EQ(said.back(), "sample 3 of 3");
}

TEST(StepBenchTest, EveryOptimizerHasTheSameLossesBothWays) {
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
    for (const char* key : {"batch",
                            "unfused_us",
                            "unfused_p5_us",
                            "unfused_p95_us",
                            "dispatches_unfused",
                            "loops_us",
                            "loops_p5_us",
                            "loops_p95_us",
                            "dispatches_loops",
                            "fused_us",
                            "fused_p5_us",
                            "fused_p95_us",
                            "dispatches_fused",
                            "ratio",
                            "ratio_low",
                            "ratio_high",
                            "loops_ratio",
                            "loops_ratio_low",
                            "loops_ratio_high",
                            "gflops",
                            "peak_share"}) {
      EXPECT_TRUE(row.contains(key) && row[key].is_number()) << key;
    }
  }
  EXPECT_EQ(json["rows"][1]["batch"], 3);
}

}  // namespace
}  // namespace onestep
