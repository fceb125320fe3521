// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/block_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::HasSubstr;

std::unique_ptr<Team> TeamOf(int workers) {
  absl::StatusOr<std::unique_ptr<Team>> team = Team::Create(workers, {});
  EXPECT_OK(team.status());
  return *std::move(team);
}

bool Continue(int64_t, int64_t) { return true; }

class BlockScheduleTest : public testing::TestWithParam<int> {};

TEST_P(BlockScheduleTest, DoesTheUnitsOfEachItemOnceInOrderAndNeverTwoAtATime) {
  std::vector<BlockItem> items = {{700, 1, 50}, {1, 1, 1}, {0, 1, 1}, {300}};
  std::vector<int64_t> next(items.size());
  std::vector<std::atomic<int>> holders(items.size());
  const std::unique_ptr<Team> team = TeamOf(GetParam());
  const auto run = [&](int worker, const Block& block) {
    EXPECT_LT(worker, GetParam());
    EXPECT_EQ(holders[block.item].fetch_add(1), 0);
    EXPECT_EQ(next[block.item], block.first);
    EXPECT_GE(block.count, 1);
    next[block.item] += block.count;
    holders[block.item].fetch_sub(1);
    return true;
  };
  EXPECT_OK(RunBlocks(*team, 1000, items, run, Continue));
  EXPECT_THAT(next, testing::ElementsAre(700, 1, 0, 300));
}

TEST_P(BlockScheduleTest, AnItemWithNoUseForMoreIsDone) {
  std::vector<BlockItem> items = {{1000000, 1, 1000}, {3, 1, 1000}};
  std::vector<int64_t> blocks(2);
  const std::unique_ptr<Team> team = TeamOf(GetParam());
  const auto run = [&](int, const Block& block) {
    ++blocks[block.item];
    return block.item == 1;
  };
  EXPECT_OK(RunBlocks(*team, 1000, items, run, Continue));
  EXPECT_EQ(blocks[0], 1);
  EXPECT_GE(blocks[1], 1);
}

TEST_P(BlockScheduleTest, TheFirstErrorEndsIt) {
  std::vector<BlockItem> items(5, {1000000, 1, 1000});
  items[3].units *= 1000;
  const std::unique_ptr<Team> team = TeamOf(GetParam());
  const auto run = [](int, const Block& block) -> absl::StatusOr<bool> {
    if (block.item == 3) return absl::InternalError("item 3");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  };
  EXPECT_THAT(RunBlocks(*team, 1000, items, run, Continue),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("item 3")));
}

// Also while the calling thread itself has nothing to do.
TEST_P(BlockScheduleTest, StopsWhenThePollSaysSo) {
  constexpr int64_t kMostPolls = 100;  // 5 s, on a machine with much else to do
  std::vector<BlockItem> items = {{1000000, 2, 1000}};
  const std::unique_ptr<Team> team = TeamOf(GetParam());
  int64_t polls = 0, last_done = -1;
  bool stopped = false;
  const auto run = [](int, const Block&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  };
  const auto poll = [&](int64_t done, int64_t of) {
    EXPECT_EQ(of, 2000000);
    EXPECT_GE(done, last_done);
    EXPECT_EQ(done % 2, 0);
    EXPECT_FALSE(stopped);
    last_done = done;
    ++polls;
    stopped = (polls >= 3 && done > 0) || polls >= kMostPolls;
    return !stopped;
  };
  EXPECT_THAT(RunBlocks(*team, 1000, items, run, poll),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_TRUE(stopped);
  EXPECT_GT(last_done, 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, BlockScheduleTest, testing::Values(1, 2, 3),
                         testing::PrintToStringParamName());

TEST(BlockScheduleOrderTest, TakesTheItemWithTheMostLeftToDo) {
  std::vector<BlockItem> items = {{10, 1, 1000}, {10, 1, 3000}, {40, 1, 500}};
  const std::unique_ptr<Team> team = TeamOf(1);
  std::vector<int> order;
  const auto run = [&](int, const Block& block) {
    order.push_back(block.item);
    return false;
  };
  EXPECT_OK(RunBlocks(*team, 1000, items, run, Continue));
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 0));
}

TEST(BlockScheduleOrderTest, MeasuresWhatAUnitTakes) {
  std::vector<BlockItem> items = {{4, 1, 1}};
  const std::unique_ptr<Team> team = TeamOf(1);
  const auto run = [&](int, const Block& block) {
    std::this_thread::sleep_for(block.count * std::chrono::milliseconds(2));
    return true;
  };
  EXPECT_OK(RunBlocks(*team, 1000, items, run, Continue));
  EXPECT_GE(items[0].unit_us, 2000);
}

}  // namespace
}  // namespace onestep
