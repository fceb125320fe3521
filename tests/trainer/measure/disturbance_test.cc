// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/disturbance.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/temp_folder.h"

namespace onestep {
namespace {

constexpr int64_t kHour = 3600'000'000'000;

TEST(DisturbanceTest, IsSeenWhenOneThreadWaited) {
  CoreWaits waits = {{"1", 0}, {"2", kHour}};
  const Disturbance disturbance([&] { return waits; });
  EXPECT_FALSE(disturbance.Seen());
  waits["1"] = kHour;
  EXPECT_TRUE(disturbance.Seen());
}

TEST(DisturbanceTest, AThreadThatIsNewCountsAndOneThatEndedDoesNot) {
  CoreWaits waits = {{"1", kHour}};
  const Disturbance disturbance([&] { return waits; });
  waits = {{"2", 0}};
  EXPECT_FALSE(disturbance.Seen());
  waits = {{"2", kHour}};
  EXPECT_TRUE(disturbance.Seen());
}

TEST(DisturbanceTest, ReadsTheWaitsOfEveryThread) {
  const TempFolder folder;
  const std::string tasks = folder.path() + "/proc/self/task/";
  for (const char* thread : {"10", "11"}) {
    std::filesystem::create_directories(tasks + thread);
  }
  std::ofstream(tasks + "10/schedstat") << "700 20 3\n";
  std::ofstream(tasks + "11/schedstat") << "900 0 1\n";
  EXPECT_EQ(ReadCoreWaits(folder.path()), (CoreWaits{{"10", 20}, {"11", 0}}));
}

// Until `waits` sees two threads that have one core.
void ShareACore(const CoreWaitsFn& waits) {
  std::atomic<bool> stop = false;
  std::thread other;
  std::thread([&] {
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(sched_getcpu(), &cpu);
    ASSERT_EQ(sched_setaffinity(0, sizeof(cpu), &cpu), 0);
    other = std::thread([&] {  // on the same core
      while (!stop) {
      }
    });
    const Disturbance disturbance(waits);
    while (!disturbance.Seen()) {
    }
    stop = true;
  }).join();
  other.join();
}

TEST(DisturbanceTest, TwoThreadsOnOneCoreDisturbEachOther) {
  ShareACore(CoreWaitsNow);
}

TEST(DisturbanceTest, SwitchesTellWhereTheKernelKeepsNoWaits) {
  ShareACore([] { return ReadCoreWaits("/nowhere"); });
}

}  // namespace
}  // namespace onestep
