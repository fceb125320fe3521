// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_DATA_SPLIT_H_
#define ONESTEP_TRAINER_DATA_SPLIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace onestep {

// Rows [0, train_rows) train; the validation_rows behind them validate.
struct Split {
  int64_t train_rows = 0;
  int64_t validation_rows = 0;
};

// Keeps the last round(fraction * rows) rows for validation: 60,000 rows at
// 0.2 are 48,000 and 12,000. InvalidArgument when the fraction is not in
// [0, 1) or leaves no row to train on.
absl::StatusOr<Split> SplitRows(int64_t rows, double validation_fraction);

// The order in which an epoch takes the train rows: a permutation of
// [0, train_rows) that depends on all three arguments and on nothing else, so
// that a resumed run continues as the first would have.
// REQUIRES: 0 <= train_rows < 2^31, 0 <= epoch < 2^32.
std::vector<int32_t> EpochOrder(int64_t train_rows, uint64_t seed,
                                int64_t epoch);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_DATA_SPLIT_H_
