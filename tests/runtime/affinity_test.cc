// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ParseAffinityTest, ReadsWordsAndLists) {
  ASSERT_OK_AND_ASSIGN(const Affinity none, ParseAffinity("none"));
  EXPECT_EQ(none.kind, Affinity::kNone);
  ASSERT_OK_AND_ASSIGN(const Affinity compact, ParseAffinity("compact"));
  EXPECT_EQ(compact.kind, Affinity::kCompact);
  ASSERT_OK_AND_ASSIGN(const Affinity list, ParseAffinity("6,0,2-4"));
  EXPECT_EQ(list.kind, Affinity::kList);
  EXPECT_THAT(list.cpus, ElementsAre(6, 0, 2, 3, 4));
}

TEST(ParseAffinityTest, IsPrintedAsItIsRead) {
  for (const char* text : {"none", "compact", "3", "0,2,4-7", "5,4", "65535"}) {
    ASSERT_OK_AND_ASSIGN(const Affinity affinity, ParseAffinity(text));
    EXPECT_EQ(ToString(affinity), text);
  }
  ASSERT_OK_AND_ASSIGN(const Affinity affinity, ParseAffinity("0,1,2,5-5"));
  EXPECT_EQ(ToString(affinity), "0-2,5");
}

TEST(ParseAffinityTest, SaysWhatItWants) {
  for (const char* text : {"", "all", "Compact", "0,", ",0", "0,,1", "-1", "1-",
                           "1-2-3", "7-4", "0 1", " 0", "+1", "0x1", "1.5",
                           "65536", "0-999999999", "99999999999999999999"}) {
    EXPECT_THAT(ParseAffinity(text),
                StatusIs(kInvalid, HasSubstr("want none, compact or CPUs")))
        << text;
    EXPECT_THAT(ParseAffinity(text),
                StatusIs(kInvalid, HasSubstr("'" + std::string(text) + "'")));
  }
}

TEST(ParseAffinityTest, RefusesACpuNamedTwice) {
  EXPECT_THAT(ParseAffinity("4,0-5"),
              StatusIs(kInvalid, HasSubstr("CPU 4 twice in '4,0-5'")));
}

TEST(WorkerCpusTest, NoneLeavesThemToTheKernel) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> cpus,
                       WorkerCpus({Affinity::kNone, {}}, 4, {0, 1}));
  EXPECT_THAT(cpus, IsEmpty());
}

TEST(WorkerCpusTest, AListIsFollowedInItsOrder) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<int> cpus,
      WorkerCpus({Affinity::kList, {5, 2, 7}}, 2, {2, 3, 5, 7}));
  EXPECT_THAT(cpus, ElementsAre(5, 2));
}

TEST(WorkerCpusTest, AShortListNamesBothNumbers) {
  EXPECT_THAT(WorkerCpus({Affinity::kList, {0, 1}}, 3, {0, 1, 2}),
              StatusIs(kInvalid, HasSubstr("affinity 0-1: want a CPU for each "
                                           "of 3 workers, got 2")));
}

TEST(WorkerCpusTest, ACpuThatIsNotAllowedIsNamed) {
  EXPECT_THAT(WorkerCpus({Affinity::kList, {1, 9}}, 1, {0, 1, 2, 4}),
              StatusIs(kInvalid, HasSubstr("affinity 1,9: want CPUs among "
                                           "0-2,4 that are allowed here, "
                                           "got 9")));
}

TEST(WorkerCpusTest, CompactTakesEveryCoreBeforeItsSecondThread) {
  const std::string root = testing::TempDir() + "affinity_compact";
  for (int cpu = 0; cpu < 6; ++cpu) {
    const std::filesystem::path folder = root + "/sys/devices/system/cpu/cpu" +
                                         std::to_string(cpu) + "/topology";
    std::filesystem::create_directories(folder);
    const int first = cpu / 2 * 2;
    std::ofstream(folder / "thread_siblings_list")
        << first << "-" << first + 1 << "\n";
  }
  const Affinity compact{Affinity::kCompact, {}};
  ASSERT_OK_AND_ASSIGN(const std::vector<int> cpus,
                       WorkerCpus(compact, 5, {0, 1, 3, 4, 5}, root));
  EXPECT_THAT(cpus, ElementsAre(0, 3, 4, 1, 5));
  ASSERT_OK_AND_ASSIGN(const std::vector<int> many,
                       WorkerCpus(compact, 5, {1, 3}, root));
  EXPECT_THAT(many, ElementsAre(1, 3, 1, 3, 1));
  std::filesystem::remove_all(root);
}

TEST(SetThreadCpusTest, SaysWhatTheKernelRefused) {
  EXPECT_THAT(SetThreadCpus(pthread_self(), {65534, 65535}),
              StatusIs(kInvalid, HasSubstr("thread on CPUs 65534-65535")));
}

}  // namespace
}  // namespace onestep
