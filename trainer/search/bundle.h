// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_BUNDLE_H_
#define ONESTEP_TRAINER_SEARCH_BUNDLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/model.h"
#include "trainer/schedule.h"
#include "trainer/search/trial.h"

namespace onestep {

// A trial and what is its own.
struct TrialState {
  Trial trial;
  std::vector<Tensor> params, states;  // of the model, of the optimizer
  int64_t diverged_step = 0;           // of the run, from 1; 0: it did not
};

// What trials must share to be trained by one program, for people and as a
// key: "784-128-10, batch 32, sgd". Rates, momentum and the amount of weight
// decay differ within a kind; sgd without weight decay is a kind of its own.
std::string KindOf(const Trial& trial);

// How the rows are walked, for all trials alike.
struct RowPlan {
  int64_t train_rows = 0;       // [0, train_rows) train
  int64_t validation_rows = 0;  // those behind them validate
  int64_t epochs = 1;
  ScheduleKind lr_schedule = ScheduleKind::kConstant;
  int64_t warmup = 0;  // steps

  // The rows of one evaluation step; large enough for full speed, small
  // enough to stay in the cache.
  static constexpr int64_t kChunk = 1024;

  int64_t StepsPerEpoch(int64_t batch) const {
    return (train_rows + batch - 1) / batch;
  }
  int64_t Chunks() const { return (validation_rows + kChunk - 1) / kChunk; }
};

// Trials of one kind that are trained in the same steps, and the arrays that
// a program of as many models walks along.
class Bundle {
 public:
  // A bundle of one works in its trial's tensors; one of more has its own,
  // with the models of an element side by side if `models_innermost`.
  // REQUIRES: one kind; `plan` and the trials outlive it.
  static absl::StatusOr<Bundle> Create(const RowPlan& plan,
                                       std::vector<TrialState*> trials,
                                       bool models_innermost);

  int64_t models() const { return std::ssize(trials_); }
  const std::vector<TrialState*>& trials() const { return trials_; }

  // The weights and states, back to the trials' tensors.
  void GiveBack();

  // Rates and step numbers of an epoch, which count from 1.
  void StartEpoch(int64_t epoch);
  // Notes the trials whose loss of these steps of the epoch is the first that
  // is not finite. False when all have diverged.
  bool NoteDiverged(int64_t first, int64_t count);
  // What the epoch made of trials()[lane], evaluated. Diverged at the last
  // step when the validation loss is not finite.
  TrialEpoch Summarize(int64_t lane);

  // What a program binds; the models of a step side by side.
  struct Value {
    std::string name;
    float* data = nullptr;
  };
  const std::vector<Value>& tensors() const { return tensors_; }
  std::vector<float> momentums, weight_decays;  // [models]
  std::vector<float> lrs;                       // [steps][models]
  std::vector<float> step_numbers;              // [steps]
  struct Results {
    std::vector<float> losses, corrects;  // [steps or chunks][models]
  };
  Results trained, evaluated;

 private:
  Bundle() = default;
  // Between the trials' tensors and our own.
  void Copy(bool in);

  const RowPlan* plan_ = nullptr;
  std::vector<TrialState*> trials_;
  bool models_innermost_ = false;
  bool given_back_ = true;
  int64_t epoch_ = 0;
  std::vector<Buffer> own_;  // one per tensor; none of a bundle of one
  std::vector<Value> tensors_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_BUNDLE_H_
