// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_LOAD_DATA_H_
#define ONESTEP_TRAINER_LOAD_DATA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "trainer/config.h"
#include "trainer/data/dataset.h"
#include "trainer/data/split.h"

namespace onestep {

// The number of classes when no model says another.
inline constexpr int kDefaultClasses = 10;
// As many as a label's byte can name.
inline constexpr int kMostClasses = 256;

// The rows of a subset, from where `config.data` leads (dataset.h) or, when
// there is no data on this machine, from the built-in set; that is said on
// stderr once per program. Labels are below `classes`: DataLoss otherwise.
absl::StatusOr<Dataset> LoadSubset(const Config& config, Subset subset,
                                   int64_t classes);

// What a train run reads.
struct TrainingData {
  Dataset train;  // also holds the validation rows, behind the train rows
  Split split;
  Dataset test;
};

// Loads both subsets and completes `config`: the model's widths from the
// data (of a search with as many classes as the labels name, else 10), and
// `data` to what people should read. InvalidArgument when the model
// does not fit the data, NotFound or DataLoss for bad data.
absl::StatusOr<TrainingData> LoadTrainingData(Config& config);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_LOAD_DATA_H_
