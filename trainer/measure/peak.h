// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_PEAK_H_
#define ONESTEP_TRAINER_MEASURE_PEAK_H_

#include <cstdint>

namespace onestep {

// Measures what multiply-adds in registers reach on `threads` threads of this
// machine: the peak no step can pass. It depends on the clock and on who else
// is on the machine, so it is sampled many times between what is compared
// with it, and the best sample counts: the share of it is then never
// flattered.
class PeakProbe {
 public:
  // Makes a sample last about a millisecond.
  explicit PeakProbe(int threads);

  void Sample();
  double best_gflops() const { return best_gflops_; }

 private:
  // Seconds; sets flops_.
  double Time();

  int threads_;
  int64_t iterations_ = 1000;
  double flops_ = 0;
  double best_gflops_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_PEAK_H_
