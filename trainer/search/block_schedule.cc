// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/block_schedule.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/base/status.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollInterval{50};
// A shorter block costs more to hand out than its end may cost in waiting.
constexpr double kShortestUs = 100;

class BlockSchedule {
 public:
  BlockSchedule(int workers, double block_us, std::vector<BlockItem>& items)
      : workers_(workers), block_us_(block_us), items_(items) {
    progress_.resize(items.size());
  }

  // Nullopt: nothing is left for this worker. The items that others hold stay
  // with them, who look for more work right when they let go.
  std::optional<Block> Next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return std::nullopt;
    int best = -1;
    double all_us = 0;
    for (int i = 0; i < std::ssize(items_); ++i) {
      all_us += LeftUs(i);
      if (progress_[i].held || Left(i) == 0) continue;
      if (best < 0 || LeftUs(i) > LeftUs(best)) best = i;
    }
    if (best < 0) return std::nullopt;
    progress_[best].held = true;
    const double us = std::clamp(all_us / (4 * workers_), kShortestUs,
                                 std::max(block_us_, kShortestUs));
    const double count = std::max(1.0, us / items_[best].unit_us);
    return Block{best, progress_[best].done,
                 count < static_cast<double>(Left(best))
                     ? static_cast<int64_t>(count)
                     : Left(best)};
  }

  void Done(const Block& block, double us, const absl::StatusOr<bool>& more) {
    const std::lock_guard<std::mutex> lock(mutex_);
    BlockItem& item = items_[block.item];
    item.unit_us = std::max(us / static_cast<double>(block.count), 1e-3);
    const bool ends = more.ok() && !*more;
    progress_[block.item] = {ends ? item.units : block.first + block.count,
                             /*held=*/false};
    status_.Update(more.status());
    if (Ended()) ended_.notify_all();
  }

  void Poll(BlockPoll poll) {
    int64_t done = 0, all = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (size_t i = 0; i < items_.size(); ++i) {
        done += progress_[i].done * items_[i].models;
        all += items_[i].units * items_[i].models;
      }
    }
    if (poll(done, all)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    status_.Update(absl::CancelledError("stopped"));
  }

  // Waits for the other workers' blocks; false when it is `until` before.
  bool WaitForEnd(Clock::time_point until) {
    std::unique_lock<std::mutex> lock(mutex_);
    return ended_.wait_until(lock, until, [this] { return Ended(); });
  }

  const absl::Status& status() const { return status_; }

 private:
  struct Progress {
    int64_t done = 0;
    bool held = false;
  };
  int64_t Left(int i) const { return items_[i].units - progress_[i].done; }
  double LeftUs(int i) const {
    return static_cast<double>(Left(i)) * items_[i].unit_us;
  }
  bool Ended() const {
    for (int i = 0; i < std::ssize(items_); ++i) {
      if (status_.ok() && Left(i) > 0) return false;
    }
    return true;
  }

  const int workers_;
  const double block_us_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<BlockItem>& items_;
  std::vector<Progress> progress_;
  absl::Status status_;
};

}  // namespace

absl::Status RunBlocks(Team& team, double block_us,
                       std::vector<BlockItem>& items, BlockRunner run,
                       BlockPoll poll) {
  BlockSchedule schedule(team.workers(), block_us, items);
  team.Run([&](int worker) {
    Clock::time_point next_poll = Clock::now();
    while (true) {
      if (worker == 0 && Clock::now() >= next_poll) {
        schedule.Poll(poll);
        next_poll = Clock::now() + kPollInterval;
      }
      const std::optional<Block> block = schedule.Next();
      if (block) {
        const Clock::time_point start = Clock::now();
        const absl::StatusOr<bool> more = run(worker, *block);
        const std::chrono::duration<double, std::micro> us =
            Clock::now() - start;
        schedule.Done(*block, us.count(), more);
      } else if (worker != 0 || schedule.WaitForEnd(next_poll)) {
        return;
      }
    }
  });
  return schedule.status();
}

}  // namespace onestep
