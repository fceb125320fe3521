// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_TRAIN_LOOP_H_
#define ONESTEP_TRAINER_TRAIN_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/config.h"
#include "trainer/data/dataset.h"
#include "trainer/model.h"
#include "trainer/schedule.h"

namespace onestep {

struct EpochResult {
  int64_t epoch = 0;          // counts from 1
  double loss = 0;            // mean over the rows, as they were trained on
  double train_accuracy = 0;  // likewise, in [0, 1]
  double seconds = 0;         // of training only
  double us_per_step = 0;
  double samples_per_second = 0;
};

// Trains a model: owns its tensors and the compiled steps, one for whole
// batches and one for the tail of an epoch. Between two steps of a slice, some
// 50 ms of work, the host does nothing: what changes from step to step lies
// in arrays that the executable walks along.
//
// Equal configurations and data give equal bits, however the slices fall.
class TrainLoop {
 public:
  // Compiles both steps. Trains on rows [0, rows) of `data`, which must
  // outlive the loop. REQUIRES: config.model has widths; rows > 0.
  static absl::StatusOr<std::unique_ptr<TrainLoop>> Create(const Config& config,
                                                           const Dataset& data,
                                                           int64_t rows);

  // Between slices: steps of the epoch that are done, loss of the last one
  // that ran. False stops there.
  using Poll = std::function<bool(int64_t steps, double loss)>;

  // Runs one epoch; they count from 1 and follow each other. Cancelled when
  // `poll` said so. OutOfRange when a loss or a weight stopped being finite,
  // with epoch and step; the params are then those before that step.
  absl::StatusOr<EpochResult> RunEpoch(int64_t epoch, const Poll& poll);

  // Traces the next `steps` steps of whole batches, which have the same bits;
  // where they cannot be traced, trace_refused() says why.
  void TraceSteps(int64_t steps) { steps_to_trace_ = steps; }
  const std::vector<StepTrace>& traces() const { return traces_; }
  const std::string& trace_refused() const { return trace_refused_; }
  // Null when every batch is whole.
  const Compiled* tail_step() const {
    return tail_.batch > 0 ? &tail_.compiled : nullptr;
  }

  int64_t steps_per_epoch() const { return full_steps_ + (tail_.batch > 0); }
  int64_t steps_done() const { return steps_done_; }  // of the run
  std::vector<Tensor>& params() { return params_; }
  // The step that most of the epoch runs.
  const Compiled& step() const {
    return full_steps_ > 0 ? full_.compiled : tail_.compiled;
  }
  int64_t tail_batch() const { return tail_.batch; }
  double compile_ms() const;

 private:
  struct Part {
    int64_t batch = 0;  // 0: there is none
    Compiled compiled;
  };
  struct Range {  // steps of an epoch
    int64_t first = 0, count = 0;
  };

  TrainLoop() = default;
  absl::Status Allocate(const Config& config);
  absl::StatusOr<Part> CompilePart(const Config& config, const Dataset& data,
                                   int64_t batch, bool dump);
  void StartEpoch(int64_t epoch);
  absl::Status RunPart(Part& part, const Range& range);
  absl::Status Execute(const Part& part, int64_t steps);
  absl::Status TakeParams(Part& part);
  absl::Status RunSteps(const Range& range);
  absl::Status CheckFinite(const Range& range);
  EpochResult Summarize(int64_t epoch, double seconds) const;
  int64_t RowsOf(int64_t step) const;
  void Save();
  void Restore();

  int64_t rows_ = 0;
  uint64_t shuffle_seed_ = 0;
  Schedule schedule_;
  int64_t epoch_ = 0;
  Part full_, tail_;
  Part* newest_ = nullptr;  // whose params are the newest; null: the host's
  int64_t full_steps_ = 0;  // of an epoch
  int64_t steps_done_ = 0;
  int64_t slice_steps_ = 1;
  int64_t steps_to_trace_ = 0;
  std::vector<StepTrace> traces_;
  std::string trace_refused_;

  std::vector<Tensor> params_, states_;
  std::vector<Tensor*> tensors_;  // both
  std::vector<Buffer> saved_;     // tensors_ at the start of the slice

  // One epoch: row numbers [rows], the rest [steps_per_epoch].
  std::vector<int32_t> order_;
  std::vector<float> lrs_, step_numbers_, losses_, corrects_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_TRAIN_LOOP_H_
