// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_TRIAL_H_
#define ONESTEP_TRAINER_SEARCH_TRIAL_H_

#include <cstdint>
#include <vector>

#include "trainer/model.h"

namespace onestep {

// One model of a search: what differs from trial to trial.
struct Trial {
  int64_t index = 0;  // from 0, in trial order
  ModelSpec model;    // with widths
  OptimizerSpec optimizer;
  double lr = 0.1;
  int64_t batch = 32;
  uint64_t seed = 1;  // of the initial weights
};

enum class TrialStatus : uint8_t {
  kWaiting,   // not begun
  kTraining,  // or broken off in the midst of it
  kFinished,  // all epochs
  kStopped,   // early, at a rung
  kDiverged,
};

// After one epoch.
struct TrialEpoch {
  double loss = 0;            // mean over the train rows, as trained on
  double train_accuracy = 0;  // likewise, in [0, 1]
  double validation_loss = 0;
  double validation_accuracy = 0;
};

struct TrialResult {
  Trial trial;
  TrialStatus status = TrialStatus::kWaiting;
  std::vector<TrialEpoch> epochs;  // done, from the first
  int64_t diverged_step = 0;       // of the run, from 1; 0: it did not
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_TRIAL_H_
