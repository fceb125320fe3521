// SPDX-License-Identifier: Apache-2.0
// Early stopping by successive halving, in the form that stops trials and
// promotes none (Li et al. 2020, "A System for Massively Parallel
// Hyperparameter Tuning"), made to repeat: what becomes of a trial depends on
// trials before it in trial order and on nothing else, so not on how many run
// side by side, how fast, or on how often the search was resumed.
#ifndef ONESTEP_TRAINER_SEARCH_ASHA_H_
#define ONESTEP_TRAINER_SEARCH_ASHA_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/search/search_config.h"
#include "trainer/search/trial.h"

namespace onestep {

struct AshaOptions {
  int64_t eta = 3;         // at least 2
  int64_t min_epochs = 1;  // of a trial
  SearchMetric metric = SearchMetric::kLoss;
};

// Orders trials, the smaller the better: the validation loss; or by accuracy
// and, where that is equal, by loss. Infinite where the loss is not finite.
std::pair<double, double> ScoreOf(const TrialEpoch& epoch, SearchMetric metric);

// Rungs are at min_epochs * eta^i epochs, i = 0, 1, ...
bool IsRung(const AshaOptions& options, int64_t epoch);

// Whether trial `index` goes on behind rung `epoch`: of the n trials with an
// index up to its own that came to the rung, it is one of the best n / eta,
// rounded up; of equals the lower index is better. A trial that diverged
// behind the rung before counts here, as the worst.
// REQUIRES: IsRung; all trials up to this one did `epoch` epochs or ended.
bool GoesOn(const AshaOptions& options, const std::vector<TrialResult>& results,
            int64_t index, int64_t epoch);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_ASHA_H_
