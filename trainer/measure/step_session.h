// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_STEP_SESSION_H_
#define ONESTEP_TRAINER_MEASURE_STEP_SESSION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/data/dataset.h"
#include "trainer/model.h"

namespace onestep {

// One compiled train step with everything bound, to be run as often as one
// likes: it walks through the rows epoch after epoch, in an order drawn once,
// and reads and writes what a training run does.
class StepSession {
 public:
  // Compiles. REQUIRES: data outlives the session; 1 <= batch <= data.rows.
  static absl::StatusOr<std::unique_ptr<StepSession>> Create(
      const ModelSpec& model, const OptimizerSpec& optimizer,
      const CompileOptions& compile, const Dataset& data, int64_t batch);

  // Back to the first step: first weights, first rows, and this rate for all
  // steps from here on.
  absl::Status Reset(float lr);

  absl::Status Run(int64_t steps);
  // The same, traced: appends a trace for each part of an epoch.
  absl::Status RunTraced(int64_t steps, std::vector<StepTrace>& traces);
  // Of the last step that ran. REQUIRES: one ran since Reset.
  float loss() const { return losses_[next_step_ - 1]; }

  const Compiled& compiled() const { return compiled_; }
  Executable& executable() { return *compiled_.executable; }

 private:
  StepSession() = default;
  absl::Status Allocate(const OptimizerSpec& optimizer);
  absl::Status StartEpoch(int64_t first_step_number);
  // run(n) for each part of an epoch.
  absl::Status RunParts(int64_t steps,
                        absl::FunctionRef<absl::Status(int64_t n)> run);

  ModelSpec model_;
  int64_t batch_ = 0;
  int64_t steps_per_epoch_ = 0;
  Compiled compiled_;
  std::vector<Tensor> params_, states_;
  std::vector<int32_t> order_;  // [steps_per_epoch, batch] rows
  // [steps_per_epoch] each.
  std::vector<float> lrs_, step_numbers_, losses_, corrects_;
  int64_t next_step_ = 0;  // of the epoch
  int64_t epochs_done_ = 0;
};

// Whether the status says that a step cannot be run here in this way: what
// compares ways names it and goes on with the others.
bool IsRefusal(const absl::Status& status);

// FLOPs of the matmuls of a train step as the textbook has it: forward and
// weight gradient of every layer and input gradient of all but the first, each
// 2 * batch * in * out; 409 kFLOP per row of 784-128-10. Whatever the step was
// compiled to, its rate is counted against these.
double TextbookFlops(const ModelSpec& model, int64_t batch);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_STEP_SESSION_H_
