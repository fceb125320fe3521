// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_
#define ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_

#include <cstdint>

namespace onestep::cpu {

// Rows of a table in memory that are wanted next: a loop that computes asks
// for a few of their cache lines at a time, so that they are in the
// second-level cache when they are read, and no load ever waits.
class RowPrefetch {
 public:
  // Rows table[rows[0..count)] of `row_bytes` each.
  RowPrefetch(const void* table, const int32_t* rows, int64_t count,
              int64_t row_bytes)
      : table_(static_cast<const char*>(table)),
        rows_(rows),
        last_(rows + count),
        row_bytes_(row_bytes) {}

  // Asks for the next `lines` lines; does nothing when all were asked for.
  inline __attribute__((always_inline)) void Next(int lines) {
    for (int i = 0; i < lines; ++i) {
      if (line_ >= end_) {
        if (rows_ == last_) return;
        line_ = table_ + *rows_++ * row_bytes_;
        end_ = line_ + row_bytes_;
      }
      __builtin_prefetch(line_, /*rw=*/0, /*locality=*/2);
      line_ += 64;
    }
  }

 private:
  const char* table_;
  const int32_t *rows_, *last_;
  int64_t row_bytes_;
  const char *line_ = nullptr, *end_ = nullptr;  // of the row at hand
};

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_
