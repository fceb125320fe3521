// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_TRIAL_COLUMNS_H_
#define ONESTEP_TRAINER_SEARCH_TRIAL_COLUMNS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "trainer/search/search_outcome.h"

namespace onestep {

// All that may differ between trials, as flags say it: "hidden", "batch",
// "optimizer", "activation", "lr", "momentum", "weight-decay", "seed".
const std::vector<std::string>& TrialColumns();

// A column's key in JSON and CSV: "weight_decay".
std::string ColumnKey(absl::string_view column);

// As the flag takes it; of momentum, null for an optimizer that has none.
// REQUIRES: one of TrialColumns().
nlohmann::ordered_json ColumnValue(const Trial& trial,
                                   absl::string_view column);

// "finished", "stopped", "diverged", "broken off", "not begun".
std::string StatusName(const TrialResult& result);

// "finished", "stopped at epoch 3", "diverged at step 17", "broken off after
// epoch 2", "broken off in epoch 1", "not begun".
std::string StatusText(const TrialResult& result);

// After the last epoch that is done; nullptr: there is none.
const TrialEpoch* LastEpoch(const TrialResult& result);

// The best, then by validation loss or, by_accuracy, validation accuracy after
// the last epoch, then those that diverged, then those without an epoch; equals
// by index.
std::vector<const TrialResult*> BestFirst(const SearchOutcome& outcome);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_TRIAL_COLUMNS_H_
