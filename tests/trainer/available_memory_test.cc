// SPDX-License-Identifier: Apache-2.0
#include "trainer/available_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace onestep {
namespace {

TEST(AvailableMemoryTest, IsWhatTheKernelSays) {
  const TempFolder folder;
  const std::string& root = folder.path();
  EXPECT_EQ(AvailableMemory(root), -1);
  std::filesystem::create_directories(root + "/proc");
  std::ofstream(root + "/proc/meminfo")
      << "MemTotal:       16 kB\nMemFree:  1 kB\nMemAvailable:   7 kB\n";
  EXPECT_EQ(AvailableMemory(root), 7 << 10);
  EXPECT_GT(AvailableMemory(), 0);
}

TEST(AvailableMemoryTest, WhatIsNotThereIsSaid) {
  EXPECT_OK(CheckMemory("30 trials", 5 << 20, 5 << 20));
  EXPECT_OK(CheckMemory("30 trials", 5 << 20, -1));
  EXPECT_THAT(CheckMemory("30 trials", 6 << 20, 5 << 20),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       testing::StrEq(
                           "30 trials want 6 MiB of memory, 5 are available")));
}

}  // namespace
}  // namespace onestep
