// SPDX-License-Identifier: Apache-2.0
// The benchmark's ways to run a step on a GPU. On the emulator its times mean
// nothing, but for how long they take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cuda/cuda_device.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/step_bench.h"

namespace onestep {
namespace {

class BenchCudaTest : public CudaTest {
 protected:
  Config Settings(Device device) {
    Config config;
    config.model.widths = {12, 8, 4};
    config.compile.device = device;
    config.compile.cuda.cuda = &cuda();
    return config;
  }

  const Dataset data_ = RandomRows(61, 12, 4, /*seed=*/2);
};

TEST_F(BenchCudaTest, TheBenchmarkComparesEveryWay) {
  Config config = Settings(Device::kGpu);
  config.samples = 2;
  ASSERT_OK_AND_ASSIGN(const BenchRow row,
                       BenchStep(config, data_, 8, [](const std::string&) {}));
  std::vector<std::string> names;
  for (const WayResult& way : row.ways) {
    names.push_back(way.name);
    EXPECT_GT(Median(way.us.at(0)), 0);
    EXPECT_GT(way.synced_us.at(0), 0);
    EXPECT_GT(way.first_step_ms.at(0), 0);
  }
  EXPECT_THAT(
      names, testing::ElementsAre("unfused_ops", "unfused", "library_ops",
                                  "library", "fused_ops", "fused", "persistent",
                                  "fused_split", "persistent_split"));
  EXPECT_THAT(row.refused, testing::IsEmpty());
  EXPECT_GT(row.Way("unfused_ops").dispatches, 20);
  EXPECT_EQ(row.Way("persistent").dispatches, 1);
}

TEST_F(BenchCudaTest, TheBenchmarkTakesOneTierBesideTheLibrarys) {
  Config config = Settings(Device::kGpu);
  config.samples = 1;
  config.compile.cuda.tier = CudaTier::kPersistent;
  ASSERT_OK_AND_ASSIGN(const BenchRow row,
                       BenchStep(config, data_, 8, [](const std::string&) {}));
  std::vector<std::string> names;
  for (const WayResult& way : row.ways) names.push_back(way.name);
  EXPECT_THAT(
      names, testing::ElementsAre("unfused_ops", "unfused", "library_ops",
                                  "library", "persistent", "persistent_split"));
}

}  // namespace
}  // namespace onestep
