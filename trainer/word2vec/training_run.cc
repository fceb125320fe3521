// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/training_run.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

constexpr int64_t kPollNs = 100'000'000;

// No training that converges has an epoch twice as bad as guessing; a few
// pairs may be.
constexpr double kDiverged = 2;
constexpr int64_t kPairs = 10'000;

}  // namespace

void TrainedCounts::Add(const StepBlock& block) {
  words += block.words;
  used += block.used;
  pairs += block.pairs;
  for (int64_t t = 0; t < block.steps; ++t) {
    loss += static_cast<double>(block.loss[t]);
  }
}

void TrainedCounts::Add(const TrainedCounts& other) {
  words += other.words;
  used += other.used;
  pairs += other.pairs;
  loss += other.loss;
}

void TrainingRun::BeginEpoch(int64_t epoch, Poll poll) {
  epoch_ = epoch;
  poll_ = std::move(poll);
  counts_ = {};
}

float TrainingRun::Rate() const {
  const double share = static_cast<double>(words_done()) /
                       static_cast<double>(std::max<int64_t>(1, words_));
  return static_cast<float>(
      std::max(min_lr_, lr_ - (lr_ - min_lr_) * std::min(share, 1.0)));
}

void TrainingRun::Count(const StepBlock& block, float lr,
                        const absl::Status& status) {
  if (!status.ok()) return Stop(status);
  TrainedCounts counts;
  counts.Add(block);
  done_.fetch_add(block.words, std::memory_order_relaxed);
  if (!std::isfinite(counts.loss)) {
    int64_t t = 0;
    while (std::isfinite(block.loss[t])) ++t;
    const std::string word(vocabulary_.word(block.centres[t]));
    return Stop(absl::OutOfRangeError(
        absl::StrCat("the loss is not finite in epoch ", epoch_, " at lr ", lr,
                     ", word ", Quote(word), ": want a lower --lr")));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.Add(counts);
  }
  CheckLoss(kPairs, lr);
}

void TrainingRun::CheckLoss(int64_t pairs, float lr) {
  double loss;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (counts_.pairs < pairs) return;
    loss = counts_.loss_per_pair();
  }
  if (loss < kDiverged * guess_) return;
  Stop(absl::OutOfRangeError(
      absl::StrCat("the loss is ", loss, " in epoch ", epoch_, " at lr ", lr,
                   ", of guessing it is ", guess_, ": want a lower --lr")));
}

void TrainingRun::MaybePoll() {
  const int64_t now = NowNs();
  if (now - polled_ns_ < kPollNs) return;
  polled_ns_ = now;
  TrainedCounts counts;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counts = counts_;
  }
  if (!poll_(counts, static_cast<double>(Rate()))) {
    Stop(absl::CancelledError("stopped"));
  }
}

void TrainingRun::Stop(absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  status_.Update(std::move(status));
  stop_.store(true, std::memory_order_relaxed);
}

}  // namespace onestep
