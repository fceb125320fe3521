// SPDX-License-Identifier: Apache-2.0
// What a search found, in words, for programs, for spreadsheets, and as a page.
// Losses that are not finite are not known: "-", null, empty.
#ifndef ONESTEP_TRAINER_SEARCH_SEARCH_REPORT_H_
#define ONESTEP_TRAINER_SEARCH_SEARCH_REPORT_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "trainer/search/search_outcome.h"

namespace onestep {

// A header and a row for each of `results`, with the columns in which trials
// differ.
std::string TrialTable(const std::vector<const TrialResult*>& results,
                       const std::vector<std::string>& varied);

// TrialTable of all, the best first; then the best, and how each kind of trial
// was run, with both ways' times.
std::string SearchTable(const SearchOutcome& outcome);

// {"best": index or null, "varied": keys, "ended", "seconds", "train_seconds",
//  "evaluate_seconds", "model_epochs": epochs of all models, as timed,
//  "resumed",
//  "trials": in trial order {"index", every column (trial_columns.h), "status",
//   "status_text", "diverged_step", "epochs_done", "epochs": [{"epoch", "loss",
//   "train_accuracy", "validation_loss", "validation_accuracy"}]},
//  "groups": [{"kind", "name", "input", "trials", "way", "programs",
//   "vector_us", "loop_us", "lowering", "refused": ways with the reason}],
//  "waves": [{"wave", "epoch", "trials", "train_seconds",
//   "evaluate_seconds"}]}
nlohmann::ordered_json SearchToJson(const SearchOutcome& outcome);

// A header and a row for each trial, in trial order, after RFC 4180: all
// columns, epochs, the last epoch's figures, status.
std::string SearchCsv(const SearchOutcome& outcome);

// A page of HTML of less than 1 MB with nothing from elsewhere: losses by epoch
// and by learning rate, a table to sort, groups, `configuration` (flags by
// name; its "command" heads the page) and this machine. Of many trials it has
// the best, of many epochs some; it says so.
std::string SearchPage(const SearchOutcome& outcome,
                       const nlohmann::ordered_json& configuration);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_SEARCH_REPORT_H_
