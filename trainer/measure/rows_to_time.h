// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_ROWS_TO_TIME_H_
#define ONESTEP_TRAINER_MEASURE_ROWS_TO_TIME_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "trainer/config.h"
#include "trainer/data/dataset.h"

namespace onestep {

// Made rows, where no others are given: a training run's share of 60,000.
inline constexpr int64_t kTimedRows = 48000;

// The train rows of --data, or made ones, for steps that are only timed: at
// least `batch`. InvalidArgument when they do not suit the model or the batch;
// else LoadSubset's errors. REQUIRES: the model has widths.
absl::StatusOr<Dataset> RowsToTime(const Config& config, int64_t batch);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_ROWS_TO_TIME_H_
