// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/split.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/data/random.h"

namespace onestep {

absl::StatusOr<Split> SplitRows(int64_t rows, double validation_fraction) {
  if (!(validation_fraction >= 0 && validation_fraction < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "validation fraction: want it in [0, 1), got ", validation_fraction));
  }
  const int64_t validation_rows = std::llround(validation_fraction * rows);
  if (validation_rows >= rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("validation fraction: want a row left to train on, got ",
                     validation_fraction, " of ", rows, " rows"));
  }
  return Split{rows - validation_rows, validation_rows};
}

std::vector<int32_t> EpochOrder(int64_t train_rows, uint64_t seed,
                                int64_t epoch) {
  CHECK(epoch >= 0 && epoch >> 32 == 0);
  constexpr uint64_t kEpochStream = uint64_t{1} << 32;
  return Random(seed, kEpochStream | epoch).Permutation(train_rows);
}

}  // namespace onestep
