// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/train_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace onestep {
namespace {

using testing::ElementsAre;

std::vector<std::string> NamesOf(const Config& config) {
  std::vector<std::string> names;
  for (const ProfiledWay& way : ReportedWays(config)) names.push_back(way.name);
  return names;
}

TEST(ReportedWaysTest, BeginWithTheRunsOwn) {
  Config config;
  config.compile.dispatch = Dispatch::kOps;
  EXPECT_THAT(NamesOf(config), ElementsAre("fused", "unfused", "single"));
  config.compile.dispatch = Dispatch::kSingle;
  EXPECT_THAT(NamesOf(config), ElementsAre("single", "unfused", "fused"));
  config.compile.fuse = false;
  EXPECT_THAT(NamesOf(config),
              ElementsAre("single unfused", "unfused", "fused", "single"));
}

TEST(ReportedWaysTest, ARunOverNonzerosIsProfiledOverThem) {
  Config config;
  config.compile.dispatch = Dispatch::kOps;
  config.compile.sparse.nonzeros = 20;
  EXPECT_THAT(NamesOf(config), ElementsAre("fused sparse", "unfused", "fused",
                                           "single", "single sparse"));
  EXPECT_EQ(ReportedWays(config)[0].compile.sparse.nonzeros, 20);
  EXPECT_EQ(ReportedWays(config)[2].compile.sparse.nonzeros, 0);
}

TEST(ReportedWaysTest, OnAGpuTheChainIsAGraph) {
  Config config;
  config.compile.device = Device::kGpu;
  config.compile.dispatch = Dispatch::kOps;
  EXPECT_THAT(NamesOf(config), ElementsAre("ops", "unfused", "fused"));
}

}  // namespace
}  // namespace onestep
