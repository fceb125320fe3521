// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_SHARDS_H_
#define ONESTEP_TRAINER_WORD2VEC_SHARDS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/buffer.h"
#include "runtime/cpu/team.h"
#include "trainer/word2vec/embedding_tables.h"
#include "trainer/word2vec/training_run.h"
#include "trainer/word2vec/window_program.h"
#include "trainer/word2vec/window_sampler.h"

namespace onestep {

// Training whose bits do not depend on the number of threads. The corpus is
// cut in a fixed number of shards, which advance in rounds: in a round each
// trains a block of steps on its own copies of the rows that the block names,
// as the last round left them; then what they added to the rows is added up in
// the order of the shards.
class Shards {
 public:
  static constexpr int kShards = 8;

  // At most, whatever the words' counts.
  static int64_t Bytes(const SamplerSource& source, const TableSizes& sizes,
                       int threads);

  // `source` and `tables` must outlive it. ResourceExhausted.
  static absl::StatusOr<Shards> Create(const SamplerSource& source,
                                       EmbeddingTables& tables, int threads);

  // Of the tables that the programs of RunEpoch bind, a shard's copies.
  int64_t in_rows() const { return capacity_.in; }
  int64_t out_rows() const { return capacity_.out; }

  // One epoch by the team, with a program of each worker.
  void RunEpoch(std::span<const int32_t> tokens, uint64_t seed, int64_t epoch,
                Team& team, std::vector<WindowProgram>& programs,
                TrainingRun& run);

 private:
  // Of a shard's block, and the rows of each table that it can name.
  struct Capacity {
    Capacity(const SamplerSource& source, const TableSizes& sizes,
             int64_t steps);
    int64_t steps, in, out;
  };
  // Copies of some rows of a table, and what was added to them.
  struct Overlay {
    float* rows = nullptr;
    std::vector<int32_t> ids;  // of the rows, by their place here
  };
  struct Shard {
    Shard(const SamplerSource& source, int64_t block_steps)
        : sampler(source),
          block(block_steps, source.contexts(), source.outputs()) {}
    WindowSampler sampler;
    StepBlock block;
    Overlay in, out;
    bool more = true;
    absl::Status status;
  };

  Shards(const Capacity& capacity, EmbeddingTables& tables, Buffer rows)
      : capacity_(capacity), tables_(&tables), rows_(std::move(rows)) {}
  void RunBlock(Shard& shard, float lr, std::vector<int32_t>& places,
                WindowProgram& program);

  Capacity capacity_;
  EmbeddingTables* tables_;
  Buffer rows_;  // of all overlays
  std::vector<Shard> shards_;
  // Of each worker, the place of each row in the overlay at hand; -1: none.
  std::vector<std::vector<int32_t>> places_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_SHARDS_H_
