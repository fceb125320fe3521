// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/gpu_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/cuda/cuda_api.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/trainer/measure/steps_only.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

StepInfo Node(double flops, double bytes) {
  StepInfo info;
  info.flops = flops;
  info.bytes = bytes;
  return info;
}

// Launches of 1 us in a graph and 3 us alone, 10 TFLOP/s, 1 TB/s, 50 GB/s.
KeptProbe Probe() {
  KeptProbe probe;
  probe.node_us = 1;
  probe.launch_us = 3;
  probe.matmul_tflops = 10;
  probe.memory_gbs = 1000;
  probe.to_device_gbs = 50;
  return probe;
}

Compiled Planned(Dispatch dispatch) {
  // 0.1 and 5 us of FLOPs; 0.001 and 2 us of bytes.
  Compiled compiled = CompiledOf({Node(1e6, 1e3), Node(5e7, 2e6)});
  compiled.dispatch = dispatch;
  compiled.cuda.emplace();
  return compiled;
}

TEST(EstimateGpuStepTest, ANodeTakesTheLongestOfLaunchComputeAndMemory) {
  const auto cost = EstimateGpuStep(Probe(), Planned(Dispatch::kGraph), 32);
  ASSERT_OK(cost);
  EXPECT_DOUBLE_EQ(cost->launch_us, 2);
  EXPECT_DOUBLE_EQ(cost->compute_us, 4);
  EXPECT_EQ(cost->memory_us, 0);
  EXPECT_DOUBLE_EQ(cost->transfer_us, (32 * 4 + 16) / 50e3);
  EXPECT_DOUBLE_EQ(cost->us, 6 + cost->transfer_us);
}

TEST(EstimateGpuStepTest, NodesThatTheHostLaunchesCostMore) {
  const auto cost = EstimateGpuStep(Probe(), Planned(Dispatch::kOps), 32);
  ASSERT_OK(cost);
  EXPECT_DOUBLE_EQ(cost->launch_us, 6);
  EXPECT_DOUBLE_EQ(cost->compute_us, 2);
}

TEST(EstimateGpuStepTest, FewBlocksHaveAShareOfTheDevice) {
  Compiled compiled = Planned(Dispatch::kGraph);
  CudaOccupancyReport& report = compiled.cuda->occupancy;
  report.multiprocessors = 100;
  report.nodes.resize(2);
  report.nodes[1].occupancy.multiprocessors_busy = 50;
  const auto cost = EstimateGpuStep(Probe(), compiled, 32);
  ASSERT_OK(cost);
  EXPECT_DOUBLE_EQ(cost->compute_us, 9);
}

TEST(EstimateGpuStepTest, AProbeThatLacksARowIsNotEnough) {
  KeptProbe probe = Probe();
  probe.memory_gbs = 0;
  EXPECT_THAT(EstimateGpuStep(probe, Planned(Dispatch::kGraph), 32),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lacks")));
}

class FindKeptProbeTest : public ::testing::Test {
 protected:
  FindKeptProbeTest() {
    setenv("ONESTEP_CACHE", folder_.path().c_str(), /*overwrite=*/1);
  }
  ~FindKeptProbeTest() override { unsetenv("ONESTEP_CACHE"); }

  // As the probe's of this machine's GPU or, without one, of some.
  void Keep(const std::string& probe) {
    const auto cuda = FindCuda();
    const auto device = cuda.ok() ? (*cuda)->Device()
                                  : absl::StatusOr<CudaDevice>(cuda.status());
    std::ofstream(folder_.path() + "/probe.json") << Json{
        {device.ok() ? device->ToString() : "NVIDIA X", Json::parse(probe)}};
  }

 private:
  const TempFolder folder_;
};

TEST_F(FindKeptProbeTest, WithoutOneItSaysWhatMakesOne) {
  EXPECT_THAT(FindKeptProbe({}), StatusIs(absl::StatusCode::kNotFound,
                                          HasSubstr("trainer probe")));
}

TEST_F(FindKeptProbeTest, ADamagedOneIsDoneWithout) {
  for (const char* rows :
       {"[1]",
        R"([{"name": "copy to the device", "value": null, "doubt": ""}])",
        "7"}) {
    Keep(absl::StrCat(R"({"rows": )", rows, "}"));
    ::testing::internal::CaptureStderr();
    EXPECT_THAT(FindKeptProbe({}), StatusIs(absl::StatusCode::kNotFound,
                                            HasSubstr("was not probed")));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("/probe.json: want what trainer probe keeps, got "))
        << rows;
  }
}

TEST_F(FindKeptProbeTest, ARowInDoubtIsLeftOut) {
  Keep(R"({"rows": [
      {"name": "copy to the device", "value": null, "doubt": "not above 0"},
      {"name": "graph node, chain of 64", "value": 1500, "doubt": ""}]})");
  ASSERT_OK_AND_ASSIGN(const KeptProbe probe, FindKeptProbe({}));
  EXPECT_EQ(probe.to_device_gbs, 0);
  EXPECT_EQ(probe.node_us, 1.5);
}

}  // namespace
}  // namespace onestep
