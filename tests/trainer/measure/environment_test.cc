// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/environment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/cpu/cpu_info.h"
#include "tests/temp_folder.h"

namespace onestep {
namespace {

class EnvironmentTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string& root() const { return folder_.path(); }

 private:
  const TempFolder folder_;
};

TEST_F(EnvironmentTest, WhatCannotBeReadIsUnknown) {
  const Environment none = EnvironmentWatch(root()).SoFar();
  EXPECT_EQ(
      ToString(none),
      "governor unknown, load unknown before, quota unknown, ms throttled "
      "unknown, steal % unknown");
  EXPECT_EQ(ToJson(none).dump(),
            R"({"cpu":"unknown","governor":"unknown","load_before":"unknown",)"
            R"("quota_cpus":"unknown","throttled_ms":"unknown",)"
            R"("steal_share":"unknown"})");
}

TEST_F(EnvironmentTest, TellsWhatChangedDuringTheRun) {
  Write("/proc/cpuinfo", "model name\t: Abacus 9\n");
  Write("/proc/loadavg", "0.25 1.00 2.00 1/100 7\n");
  Write("/proc/stat", "cpu  100 0 0 900 0 0 0 10 0 0\ncpu0 1 2\n");
  Write("/proc/self/cgroup", "0::/app\n");
  Write("/sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  Write("/sys/fs/cgroup/app/cpu.stat", "nr_throttled 3\nthrottled_usec 5000\n");
  // Of the group around it, much of it before.
  Write("/sys/fs/cgroup/cpu.stat", "throttled_usec 900000\n");
  for (const int cpu : AffinityCpus()) {
    Write(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                       "/cpufreq/scaling_governor"),
          "powersave\n");
  }
  const EnvironmentWatch watch(root());
  Write("/proc/loadavg", "2.00 1.00 2.00 1/100 7\n");
  Write("/proc/stat", "cpu  150 0 0 940 0 0 0 20 0 0\n");
  Write("/sys/fs/cgroup/app/cpu.stat", "throttled_usec 47000\n");
  Write("/sys/fs/cgroup/cpu.stat", "throttled_usec 901000\n");
  EXPECT_EQ(ToString(watch.SoFar()),
            "governor powersave, load 0.2 before, quota 2 CPUs, ms throttled "
            "42, steal % 10.0");
  EXPECT_EQ(ToJson(watch.SoFar()).dump(),
            R"({"cpu":"Abacus 9","governor":"powersave","load_before":0.25,)"
            R"("quota_cpus":2,"throttled_ms":42.0,"steal_share":0.1})");
}

TEST_F(EnvironmentTest, AGroupWithoutQuotaHasNone) {
  Write("/proc/self/cgroup", "4:cpu,cpuacct:/\n");
  Write("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nthrottled_time 0\n");
  const Environment environment = EnvironmentWatch(root()).SoFar();
  EXPECT_EQ(environment.quota_cpus, 0);
  EXPECT_EQ(environment.throttled_ms, 0);
  EXPECT_EQ(ToJson(environment)["quota_cpus"], "none");
}

}  // namespace
}  // namespace onestep
