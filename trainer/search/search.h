// SPDX-License-Identifier: Apache-2.0
// The course of a search: which trials train side by side, which end when.
#ifndef ONESTEP_TRAINER_SEARCH_SEARCH_H_
#define ONESTEP_TRAINER_SEARCH_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/model.h"
#include "trainer/search/asha.h"
#include "trainer/search/search_outcome.h"
#include "trainer/search/trial_engine.h"

namespace onestep {

struct SearchOptions {
  int64_t epochs = 1;     // of a trial
  int64_t parallel = 32;  // trials of a wave
  SearchMetric metric = SearchMetric::kLoss;
  std::optional<AshaOptions> asha;  // none: nothing is stopped
  double time_limit = 0;            // seconds; 0: none
};

// A trial's weights after its last whole epoch.
struct KeptModel {
  int64_t trial = -1;  // none
  std::vector<Tensor> params;
};

// The best of the trials that ended (finished or stopped), and the best of
// those in training if it is better still. A resumed search begins with the
// first and trains the second again.
struct KeptModels {
  KeptModel ended, training;
  KeptModel& best() { return training.trial >= 0 ? training : ended; }
  const KeptModel& best() const {
    return training.trial >= 0 ? training : ended;
  }
};

// Is told how the search goes.
class SearchWatcher {
 public:
  virtual ~SearchWatcher() = default;
  // Steps of all trials of the running epoch that are done, of how many; every
  // few milliseconds. False interrupts the search.
  virtual bool OnSteps(const SearchOutcome& so_far, int64_t steps,
                       int64_t of) = 0;
  // After a wave's epoch, the last of so_far.epochs. An error ends the search.
  virtual absl::Status OnEpoch(const SearchOutcome& so_far,
                               const KeptModels& models) = 0;
};

// Finished, stopped or diverged.
bool HasEnded(const TrialResult& result);

// The trial with the best last epoch, of those that did not diverge and whose
// validation loss is finite: of all, or of those alone that ended. -1: none.
int64_t BestTrial(const std::vector<TrialResult>& results, SearchMetric metric,
                  bool ended_alone);

// Trains the trials of `earlier` that have not ended, in trial order, in waves
// of options.parallel that train side by side, an epoch of all after another.
// A diverged one is dropped. Ends early, with `ended` set and trials left in
// training, when the time is over or the watcher says so. Groups, epochs and
// seconds of `earlier` and `models` are what is kept of an earlier run, and
// then of both.
//
// Fails as engine and watcher fail. REQUIRES: earlier.results[i] has index i.
absl::StatusOr<SearchOutcome> RunTrials(const SearchOptions& options,
                                        SearchOutcome earlier,
                                        TrialEngine& engine,
                                        SearchWatcher& watcher,
                                        KeptModels& models);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_SEARCH_H_
