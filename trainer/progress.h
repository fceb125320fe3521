// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_PROGRESS_H_
#define ONESTEP_TRAINER_PROGRESS_H_

#include <chrono>
#include <cstdint>

namespace onestep {

// One line on stderr that is written over and over, at most ten times a
// second; nothing when stderr is no terminal.
class Progress {
 public:
  Progress(int64_t epochs, int64_t steps_per_epoch);

  // `steps` of epoch `epoch` (from 1) are done.
  void Update(int64_t epoch, int64_t steps, double loss);
  // Removes the line, so that other output can take its place.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  const bool terminal_;
  const int64_t epochs_, steps_per_epoch_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_;
  bool shown_ = false;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_PROGRESS_H_
