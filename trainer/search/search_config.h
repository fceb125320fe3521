// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_SEARCH_CONFIG_H_
#define ONESTEP_TRAINER_SEARCH_SEARCH_CONFIG_H_

#include <cstdint>

#include "trainer/search/grouping.h"
#include "trainer/search/search_space.h"

namespace onestep {

enum class Sample : uint8_t { kGrid, kRandom };

enum class EarlyStop : uint8_t { kNone, kAsha };

// What the best trial is best in, on the validation rows.
enum class SearchMetric : uint8_t { kLoss, kAccuracy };

// What the verb search was asked to do, beside Config's own.
struct SearchConfig {
  SearchSpace space;
  Sample sample = Sample::kGrid;
  int64_t trials = 0;    // of kRandom
  int64_t parallel = 0;  // trials of a wave; 0: by the machine
  Grouping group = Grouping::kAuto;
  SearchMetric metric = SearchMetric::kLoss;
  EarlyStop early_stop = EarlyStop::kNone;
  int64_t asha_eta = 3;
  int64_t asha_min_epochs = 1;
  double time_limit = 0;  // seconds; 0: none
  bool resume = false;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_SEARCH_CONFIG_H_
