// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_TRAINING_RUN_H_
#define ONESTEP_TRAINER_WORD2VEC_TRAINING_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "absl/status/status.h"
#include "trainer/word2vec/step_block.h"
#include "trainer/word2vec/vocabulary.h"
#include "trainer/word2vec/word2vec_config.h"

namespace onestep {

// What was done, of an epoch or of a run.
struct TrainedCounts {
  int64_t words = 0;  // of the vocabulary, left out ones too
  int64_t used = 0;   // not left out by subsampling
  int64_t pairs = 0;  // centres with a context, or with CBOW's mean
  double loss = 0;    // their sum

  void Add(const StepBlock& block);
  void Add(const TrainedCounts& other);
  double loss_per_pair() const {
    return pairs == 0 ? 0 : loss / static_cast<double>(pairs);
  }
};

// How far a run is, shared by its threads.
class TrainingRun {
 public:
  // Called by one thread some ten times a second; false stops the run.
  using Poll = std::function<bool(const TrainedCounts& epoch, double lr)>;

  // `words`: that the whole run will train on; `guess`: the loss of a pair
  // where nothing is known. `vocabulary` must outlive it.
  TrainingRun(const Word2vecConfig& config, const Vocabulary& vocabulary,
              int64_t words, double guess)
      : vocabulary_(vocabulary),
        lr_(config.lr),
        min_lr_(config.min_lr),
        words_(words),
        guess_(guess) {}

  // ---- by the thread that runs the epochs ----
  void BeginEpoch(int64_t epoch, Poll poll);
  void EndEpoch() { CheckLoss(1, Rate()); }
  // The first error of the epoch: of a step; Cancelled by the poll; OutOfRange
  // of a loss that is not finite, naming epoch, rate and word, or that is far
  // worse than guessing.
  const absl::Status& status() const { return status_; }
  // What was done in the epoch, whatever the status.
  const TrainedCounts& counts() const { return counts_; }

  // ---- by all threads ----
  // Falls in a line from lr to min_lr with the words done.
  float Rate() const;
  int64_t words_done() const { return done_.load(std::memory_order_relaxed); }
  int64_t words() const { return words_; }  // of the whole run
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  // All words of the run are done, be it amid an epoch.
  bool finished() const { return words_done() >= words_; }
  // Counts a block that was run at `lr` with `status`.
  void Count(const StepBlock& block, float lr, const absl::Status& status);
  // Lets the poll see how far it is, if the last time is long enough ago; by
  // one thread.
  void MaybePoll();

 private:
  void Stop(absl::Status status);
  // Once there are so many pairs.
  void CheckLoss(int64_t pairs, float lr);

  const Vocabulary& vocabulary_;
  const double lr_, min_lr_;
  const int64_t words_;
  const double guess_;
  std::atomic<int64_t> done_ = 0;
  std::atomic<bool> stop_ = false;
  int64_t epoch_ = 0;
  Poll poll_;
  int64_t polled_ns_ = 0;
  std::mutex mutex_;  // of what follows
  TrainedCounts counts_;
  absl::Status status_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_TRAINING_RUN_H_
