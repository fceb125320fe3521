// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_EMBEDDING_TABLES_H_
#define ONESTEP_TRAINER_WORD2VEC_EMBEDDING_TABLES_H_

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/buffer.h"
#include "trainer/word2vec/window_sampler.h"

namespace onestep {

struct TableSizes {
  int64_t words = 0;    // rows of `in`
  int64_t outputs = 0;  // rows of `out`: words, or inner nodes
  int64_t size = 0;     // values of a row
  int64_t threads = 1;
  int64_t hot = 0;  // rows of each table that every thread has a copy of

  int64_t stride() const { return (size + 15) / 16 * 16; }
  int64_t in_rows() const { return words + threads * hot; }
  int64_t out_rows() const { return outputs + threads * hot; }
  // Of the two tables; of the copies and what they were when last merged.
  int64_t shared_bytes() const { return 4 * stride() * (words + outputs); }
  int64_t private_bytes() const { return 16 * stride() * threads * hot; }
};

// The two tables that are trained: rows of `size` values, padded with zeros to
// whole cache lines. Behind the rows that all threads share there is for each
// thread a copy of the `hot` first ones, with which it works: rows that every
// step writes would else go from core to core (Vuurens et al. 2016).
class EmbeddingTables {
 public:
  // Words uniform in [-1, 1) / size, drawn from the seed; outputs 0.
  // ResourceExhausted.
  static absl::StatusOr<EmbeddingTables> Create(const TableSizes& sizes,
                                                uint64_t seed);

  const TableSizes& sizes() const { return sizes_; }
  float* in() { return in_.as<float>(); }
  float* out() { return out_.as<float>(); }
  const float* in() const { return in_.as<float>(); }
  RowMap MapOf(int thread) const;

 private:
  TableSizes sizes_;
  Buffer in_, out_;
};

// Rows that follow each other, of both tables, and in how many windows of a
// thread each is merged once.
struct MergeGroup {
  int64_t begin, rows;
  double windows;
};

// A thread's copies of the hot rows. A merge adds to the shared row what the
// thread added to its copy since the last one, and copies the sum, in which
// there is what the others added. After MergeAll and until Take the copies are
// not in use.
class HotRows {
 public:
  // The groups are those of all hot rows.
  // REQUIRES: `tables` and `mutex`, one for all threads, outlive it.
  static absl::StatusOr<HotRows> Create(EmbeddingTables& tables, int thread,
                                        std::span<const MergeGroup> groups,
                                        std::mutex& mutex);

  // Copies the shared rows as they are now.
  void Take();
  // Of each group the rows whose turn it is after so many more windows. While
  // another thread merges they are put off, but by no more than a turn.
  void MergeDue(int64_t windows);
  // All of them.
  void MergeAll();

 private:
  struct Turn {
    MergeGroup group;
    int64_t next = 0;  // row of the group
    double due = 0;    // rows
  };

  HotRows(EmbeddingTables& tables, int thread,
          std::span<const MergeGroup> groups, std::mutex& mutex, Buffer base);
  void MergeRange(int64_t begin, int64_t rows);

  EmbeddingTables* tables_;
  std::mutex* mutex_;
  float *in_, *out_;  // the copies
  Buffer base_;       // of in's, then of out's
  std::vector<Turn> turns_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_EMBEDDING_TABLES_H_
