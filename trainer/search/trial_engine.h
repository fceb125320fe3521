// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_TRIAL_ENGINE_H_
#define ONESTEP_TRAINER_SEARCH_TRIAL_ENGINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/model.h"
#include "trainer/search/trial.h"

namespace onestep {

// What one epoch made of a trial.
struct EpochOutcome {
  int64_t index = 0;          // of the trial
  TrialEpoch epoch;           // where it did not diverge
  int64_t diverged_step = 0;  // of the run, from 1; 0: it did not
};

// How trials of one kind are run, for people: what auto measured and chose.
struct GroupReport {
  std::string name;     // of the kind: "784-128-10, batch 32, sgd"
  std::string kind;     // with ", sparse input" where it is
  bool sparse = false;  // the first layer walks nonzeros
  int64_t trials = 0;   // of the kind
  // "vector": many models in one step; "loop": each by itself.
  std::string way;
  int64_t programs = 0;  // executables that share the trials out
  // Microseconds of all workers together for one step of one model, measured;
  // 0: not measured.
  double vector_us = 0, loop_us = 0;
  std::vector<std::string> refused;  // "vector: ..." ways, and why
  std::string lowering;              // of one program
};

// Trains many trials side by side. Whatever is trained beside it, a trial's
// bits are those it has alone.
class TrialEngine {
 public:
  // Steps of all trials of the epoch that are done, of how many; false stops
  // the epoch within milliseconds.
  using Poll = std::function<bool(int64_t steps, int64_t of)>;

  virtual ~TrialEngine() = default;

  // Takes a trial in, its weights as its seed draws them. Indices are unique.
  virtual absl::Status Add(const Trial& trial) = 0;
  // Frees what a trial holds; it takes part in no later epoch.
  virtual void Drop(int64_t index) = 0;

  // Trains the trials that were added and not dropped for their next epoch,
  // and evaluates them. All have done epoch - 1 epochs. One outcome each, in
  // the order of their indices. A diverged trial is to be dropped. Cancelled
  // when `poll` said so: their weights are then of no use.
  virtual absl::StatusOr<std::vector<EpochOutcome>> RunEpoch(
      int64_t epoch, const Poll& poll) = 0;

  // The trial's weights, as the last epoch left them.
  virtual std::vector<Tensor>& Params(int64_t index) = 0;

  // Of the last RunEpoch.
  virtual std::vector<GroupReport> Groups() const = 0;
  // Seconds of the last RunEpoch: of training alone, of evaluation alone.
  virtual double train_seconds() const = 0;
  virtual double evaluate_seconds() const = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_TRIAL_ENGINE_H_
