// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_AUTOTUNE_H_
#define ONESTEP_TRAINER_AUTOTUNE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/config.h"
#include "trainer/data/dataset.h"
#include "trainer/measure/disturbance.h"

namespace onestep {

// One way to run the step, and what it took.
struct AutoCandidate {
  Dispatch dispatch = Dispatch::kOps;
  int threads = 1;
  InputMode input = InputMode::kDense;
  // On a GPU, where threads mean nothing; kAuto: not on one.
  CudaTier tier = CudaTier::kAuto;
  CudaFirstLayer first_layer = CudaFirstLayer::kAuto;
  double us = 0;  // a step, the fastest of some samples
};

struct AutoChoice {
  double density = 0;  // of the input: the share of its values that is not 0
  // The fastest first; empty when nothing was left to choose.
  std::vector<AutoCandidate> candidates;
  std::vector<std::string> refused;  // "single: ..." what could not be tried
  bool cached = false;
  // Something else had a core whenever some candidate ran.
  bool busy = false;
};

// Density of the input from which on nonzeros are not even tried. Below it the
// faster of the two is found by timing both: with 50 % of Fashion-MNIST's
// pixels not zero, nonzeros win by a quarter on Zen 5.
inline constexpr double kSparseDensity = 0.7;

// The threads to choose from: 1, 2, 4 ... and all of config.compile.threads, no
// more than an affinity list has CPUs; or only these where they were given.
std::vector<int> ThreadCounts(const Config& config);

// Settles --dispatch, --threads and --input where they are auto, on a GPU
// --dispatch, --tier and --first-layer, by timing the real step on `data`, and
// writes them into `config`. The choice is kept in auto.json (cache.h), by
// BuildAndCpu (machine_info.h), graph, data density and flags, so that a
// repeated run makes the same and repeats its bits; but not that of a busy
// machine, where it may be wrong. `waits` tells which of the times were
// disturbed.
//
// Unavailable: there is no such GPU. With a sparse input, given or chosen,
// config.compile.sparse says so. REQUIRES: config.model has widths.
absl::StatusOr<AutoChoice> SettleAuto(Config& config, const Dataset& data,
                                      const CoreWaitsFn& waits = CoreWaitsNow);

// "--dispatch single --threads 2 --input sparse".
std::string FlagsOf(const AutoCandidate& candidate);

// For people: a line with the flags and what the others took.
std::string AutoText(const AutoChoice& choice);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_AUTOTUNE_H_
