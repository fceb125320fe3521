// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WORD2VEC_TRAINER_H_
#define ONESTEP_TRAINER_WORD2VEC_WORD2VEC_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "runtime/cpu/latency_watch.h"
#include "runtime/cpu/team.h"
#include "trainer/word2vec/corpus.h"
#include "trainer/word2vec/embedding_tables.h"
#include "trainer/word2vec/shards.h"
#include "trainer/word2vec/training_run.h"
#include "trainer/word2vec/window_program.h"
#include "trainer/word2vec/word2vec_config.h"
#include "trainer/word2vec/word_vectors.h"

namespace onestep {

// What training takes beside the corpus's text, in bytes.
struct Word2vecMemory {
  int64_t tables = 0;         // the two, shared by all threads
  int64_t hot_rows = 0;       // the threads' copies
  int64_t tokens = 0;         // of the encoded corpus
  int64_t words = 0;          // vocabulary, keep, negatives or tree
  int64_t steps = 0;          // the threads' blocks of steps and their values
  int64_t deterministic = 0;  // the shards', of --deterministic

  int64_t total() const {
    return tables + hot_rows + tokens + words + steps + deterministic;
  }
};

// Trains word vectors (Mikolov et al. 2013). Threads run the compiled step of a
// window over slices of the corpus and write to the same tables without locks
// (Recht et al. 2011), so that two runs are not alike; with one thread or
// config.deterministic they are, bit for bit.
class Word2vecTrainer {
 public:
  // `corpus` must outlive it. ResourceExhausted; errors of
  // Compile.
  static absl::StatusOr<std::unique_ptr<Word2vecTrainer>> Create(
      const Word2vecConfig& config, const Corpus& corpus, int64_t epochs,
      uint64_t seed, const CompileOptions& options);

  static Word2vecMemory MemoryOf(const Word2vecConfig& config,
                                 const CompileOptions& options,
                                 const Corpus& corpus);

  // Epochs count from 1 and follow each other. Adds what was done to `counts`,
  // also where it ended early: errors as of TrainingRun::status. The vectors
  // are those of the moment.
  absl::Status RunEpoch(int64_t epoch, const TrainingRun::Poll& poll,
                        TrainedCounts& counts);

  const TrainingRun& run() const { return *run_; }
  // Words that threads trained with their own copies of the hot rows.
  int64_t words_with_copies() const { return words_with_copies_; }
  const Compiled& compiled() const { return programs_[0].compiled(); }
  // What was trained: a view of this object's memory.
  VectorsView Vectors() const;

 private:
  class RowsInUse;

  Word2vecTrainer(const Word2vecConfig& config, const Corpus& corpus,
                  int64_t epochs, uint64_t seed, int threads);
  absl::Status Prepare(const CompileOptions& options);
  void RunSlices(int worker, int64_t epoch);

  const Word2vecConfig config_;
  const Corpus& corpus_;
  const uint64_t seed_;
  const int threads_;
  std::vector<uint32_t> keep_;
  std::optional<AliasTable> negatives_;
  std::optional<HuffmanTree> tree_;
  SamplerSource source_;
  std::unique_ptr<TrainingRun> run_;
  std::optional<EmbeddingTables> tables_;
  std::unique_ptr<Team> team_;
  std::vector<WindowProgram> programs_;  // of each thread
  int64_t block_steps_ = 0;              // of each thread's block
  std::mutex merging_;
  std::vector<HotRows> hot_rows_;      // of each thread; none: there are none
  std::optional<LatencyWatch> watch_;  // decides whether copies are used
  std::optional<Shards> shards_;       // of --deterministic
  std::atomic<int64_t> words_with_copies_ = 0;
  std::atomic<int64_t> next_slice_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WORD2VEC_TRAINER_H_
