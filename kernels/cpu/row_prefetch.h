// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_
#define ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_

#include <cstdint>

namespace onestep::cpu {

// Rows of a table in memory that are wanted next: a loop that computes asks
// for a few of their cache lines at a time, so that they are in the cache when
// they are read, and no load waits for memory.
class RowPrefetch {
 public:
  // Rows table[rows[0..count)] of `row_bytes` each.
  RowPrefetch(const void* table, const int32_t* rows, int64_t count,
              int64_t row_bytes)
      : table_(static_cast<const char*>(table)),
        rows_(rows),
        last_(rows + count),
        row_bytes_(row_bytes) {}

  // About how often Next will be called: lines asked for long before they are
  // read may be gone again.
  void SpreadOver(int64_t calls) {
    const int64_t lines = (last_ - rows_) * ((row_bytes_ + 126) / 64);
    lines_ = calls < 1 ? lines : (lines + calls - 1) / calls;
  }

  // Asks for the next few lines; does nothing when all were asked for.
  inline __attribute__((always_inline)) void Next() {
    for (int64_t i = 0; i < lines_; ++i) {
      if (line_ >= end_) {
        if (rows_ == last_) return;
        line_ = table_ + *rows_++ * row_bytes_;
        end_ = line_ + row_bytes_;
      }
      __builtin_prefetch(line_, /*rw=*/0, /*locality=*/3);
      line_ += 64;
    }
  }

 private:
  const char* table_;
  const int32_t *rows_, *last_;
  int64_t row_bytes_;
  int64_t lines_ = 2;                            // of a call
  const char *line_ = nullptr, *end_ = nullptr;  // of the row at hand
};

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_
