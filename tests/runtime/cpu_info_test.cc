// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace onestep {
namespace {

namespace fs = std::filesystem;

// A folder that stands for the root of another machine.
class CpuInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "cpu_info_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(CpuInfoTest, QuotaOfCgroupV2IsRoundedUp) {
  Write("/proc/self/cgroup", "0::/app\n");
  Write("/sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_), 2);
}

TEST_F(CpuInfoTest, TheTightestGroupAroundTheProcessCounts) {
  Write("/proc/self/cgroup", "0::/pod/app\n");
  Write("/sys/fs/cgroup/pod/app/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
  Write("/sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_), 3);
}

TEST_F(CpuInfoTest, AGroupOutsideOfTheMountLeavesTheMountItself) {
  Write("/proc/self/cgroup", "0::/../../host/path\n");
  Write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_), 4);
}

TEST_F(CpuInfoTest, ReadsTheQuotaOfCgroupV1) {
  Write("/proc/self/cgroup", "7:memory:/x\n3:cpu,cpuacct:/docker/1f\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/1f/cpu.cfs_quota_us", "250000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/1f/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_), 3);
}

TEST_F(CpuInfoTest, NoQuotaIsNoLimit) {
  EXPECT_EQ(CgroupCpuLimit(root_), 0);
  Write("/proc/self/cgroup", "0::/\n3:cpu:/\nnonsense\n");
  Write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuLimit(root_), 0);
}

TEST_F(CpuInfoTest, TheGroupsAreThoseOfTheCpuThatAreThere) {
  EXPECT_TRUE(CpuCgroups(root_).empty());
  Write("/proc/self/cgroup", "7:memory:/x\n3:cpu,cpuacct:/pod/app\n");
  const std::string mount = "/sys/fs/cgroup/cpu,cpuacct";
  Write("/sys/fs/cgroup/memory/x/memory.stat", "");
  Write(mount + "/pod/cpu.stat", "");
  EXPECT_EQ(CpuCgroups(root_),
            (std::vector<std::string>{root_ + mount + "/pod", root_ + mount}));
}

TEST_F(CpuInfoTest, TheTwoThreadsOfACoreAreOneCore) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
              "/topology/thread_siblings_list",
          cpu % 2 == 0 ? "0,2\n" : "1,3\n");
  }
  EXPECT_EQ(PhysicalCores({0, 1, 2, 3}, root_), 2);
  EXPECT_EQ(PhysicalCores({0, 2}, root_), 1);
  EXPECT_EQ(PhysicalCores({0, 1}, root_), 2);
}

TEST_F(CpuInfoTest, CpusOfWhichNothingIsKnownAreCores) {
  EXPECT_EQ(PhysicalCores({0, 5, 6}, root_), 3);
}

TEST_F(CpuInfoTest, TheFirstThreadOfEveryCoreComesBeforeTheSecondOfAny) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
              "/topology/thread_siblings_list",
          cpu < 2 ? "0-1\n" : "2-3\n");
  }
  EXPECT_EQ(CoresFirst({0, 1, 2, 3, 7}, root_),
            (std::vector<int>{0, 2, 7, 1, 3}));
  EXPECT_EQ(CoresFirst({}, root_), std::vector<int>());
}

TEST_F(CpuInfoTest, ReadsTheModelName) {
  Write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU 9\nx\t: y\n");
  EXPECT_EQ(CpuModelName(root_), "Fast CPU 9");
  EXPECT_EQ(CpuModelName(root_ + "/none"), "unknown");
}

TEST(DefaultThreadsTest, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(AffinityCpus().front(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(AffinityCpus().size(), 1u);
  EXPECT_EQ(DefaultThreads(), 1);
  EXPECT_EQ(UsableCpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_LE(DefaultThreads(), static_cast<int>(AffinityCpus().size()));
}

}  // namespace
}  // namespace onestep
