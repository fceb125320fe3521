// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_SEARCH_OUTCOME_H_
#define ONESTEP_TRAINER_SEARCH_SEARCH_OUTCOME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/search/trial.h"
#include "trainer/search/trial_engine.h"

namespace onestep {

// One epoch of a wave of trials that were trained side by side.
struct WaveEpoch {
  int64_t wave = 0, epoch = 0;  // from 1
  int64_t trials = 0;           // that took part
  double train_seconds = 0, evaluate_seconds = 0;
};

// What a search found, and how it ran.
struct SearchOutcome {
  std::vector<TrialResult> results;  // in trial order, all of them
  int64_t best = -1;                 // index of a trial; -1: none is finite
  bool by_accuracy = false;          // what the best is best in; else by loss
  std::vector<std::string> varied;   // columns that differ between trials, as
                                     // flags say them: "lr", "hidden", "seed"
  // These are of all runs, where one resumed another.
  std::vector<GroupReport> groups;
  std::vector<WaveEpoch> epochs;
  double seconds = 0;
  int64_t resumed = 0;  // trials that an earlier run had ended
  std::string ended;    // "": all trials; "time limit", "interrupted"
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_SEARCH_OUTCOME_H_
