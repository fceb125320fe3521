// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_
#define ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_

#include <cstdint>

namespace onestep::cpu {

// Prefetches the rows of a table that the next batch will read. A compute loop
// calls Next() regularly; each call prefetches a few cache lines, so that the
// rows are in the cache when the next step reads them.
//
// Not thread-safe. The table and the row indices must outlive the object.
class RowPrefetch {
 public:
  // Prefetches table[rows[0..count)]; each row has `row_bytes` bytes.
  RowPrefetch(const void* table, const int32_t* rows, int64_t count,
              int64_t row_bytes)
      : table_(static_cast<const char*>(table)),
        rows_(rows),
        last_(rows + count),
        row_bytes_(row_bytes) {}

  // Spreads the lines evenly over about this many calls of Next. A line that is
  // prefetched too early may be evicted before it is read.
  void SpreadOver(int64_t calls) {
    const int64_t lines = (last_ - rows_) * ((row_bytes_ + 126) / 64);
    lines_ = calls < 1 ? lines : (lines + calls - 1) / calls;
  }

  // Prefetches the next few lines; does nothing when none is left.
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
  int64_t lines_ = 2;                            // lines per call of Next
  const char *line_ = nullptr, *end_ = nullptr;  // rest of the current row
};

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_ROW_PREFETCH_H_
