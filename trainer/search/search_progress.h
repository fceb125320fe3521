// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_SEARCH_PROGRESS_H_
#define ONESTEP_TRAINER_SEARCH_SEARCH_PROGRESS_H_

#include <cstdint>
#include <string>

#include "trainer/search/search_outcome.h"

namespace onestep {

// What a person sees on stderr while a search runs: on a terminal the best
// trials and the state of the epoch, drawn over and over, at most ten times a
// second; elsewhere a line for each epoch of a wave.
class SearchProgress {
 public:
  // `waves` of trials for `epochs` each.
  SearchProgress(int64_t waves, int64_t epochs);

  // The running epoch did `steps` of `of` steps of all its trials together.
  void Update(const SearchOutcome& so_far, int64_t steps, int64_t of);
  void EndEpoch(const SearchOutcome& so_far);
  // Removes what is drawn, so that other output can take its place.
  void Clear();

 private:
  void BeginEpoch(const SearchOutcome& so_far);
  // "ETA 1:05": were no trial stopped, as if a parameter's epoch cost the same
  // in all models. `share` of the epoch is done.
  std::string Eta(double share) const;
  void Draw(const std::string& text);

  const bool terminal_;
  const int64_t waves_, epochs_;
  const int64_t begin_ns_;
  int64_t epoch_begin_ns_ = 0, drawn_ns_ = 0;
  bool in_epoch_ = false;
  int64_t wave_ = 1, epoch_ = 1;
  // Parameters times epochs: of the run, of the running epoch, to be done
  // behind it.
  double done_ = 0, running_ = 0, waiting_ = 0;
  std::string top_;  // the best trials
  int lines_ = 0;    // drawn
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_SEARCH_PROGRESS_H_
