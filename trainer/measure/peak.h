// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_PEAK_H_
#define ONESTEP_TRAINER_MEASURE_PEAK_H_

#include <cstdint>

namespace onestep {

// Measures what multiply-adds in registers reach on `threads` threads of this
// machine: the peak no step can pass. It depends on the clock and on who else
// is on the machine, so it is sampled many times between what is compared
// with it, and the best sample counts: the share of it is then never
// flattered. Each thread is timed by itself, so that one which another program
// keeps waiting does not halve what two reach.
class PeakProbe {
 public:
  // Makes a sample last about a millisecond.
  explicit PeakProbe(int threads);

  void Sample();
  double best_gflops() const { return best_gflops_; }

 private:
  int threads_;
  int64_t iterations_ = 1000;
  double best_gflops_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_PEAK_H_
