// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_PEAK_H_
#define ONESTEP_TRAINER_MEASURE_PEAK_H_

#include <cstdint>
#include <string>

namespace onestep {

// That `threads` are more than the CPUs (UsableCpus) they run on; "": no.
std::string TakeTurnsNote(int threads);

// Measures what multiply-adds in registers reach on `threads` threads of this
// machine, or on as many as it has CPUs: the peak no step can pass. It depends
// on the clock and on who else is on the machine, so it is sampled many times
// between what is compared with it, and the best sample counts: the share of it
// is then never flattered. Each thread is timed by itself, so that one which
// another program keeps waiting does not halve what two reach; more of them
// than CPUs would each claim the time of another.
class PeakProbe {
 public:
  // Makes a sample last about a millisecond.
  explicit PeakProbe(int threads);

  int threads() const { return threads_; }
  void Sample();
  double best_gflops() const { return best_gflops_; }

 private:
  int threads_;
  int64_t iterations_ = 1000;
  double best_gflops_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_PEAK_H_
