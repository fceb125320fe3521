// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/step_session.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/base/status.h"
#include "trainer/bind.h"
#include "trainer/data/split.h"

namespace onestep {
namespace {

constexpr uint64_t kSeed = 1;

}  // namespace

absl::StatusOr<std::unique_ptr<StepSession>> StepSession::Create(
    const ModelSpec& model, const OptimizerSpec& optimizer,
    const CompileOptions& compile, const Dataset& data, int64_t batch) {
  CHECK(batch >= 1 && batch <= data.rows);
  std::unique_ptr<StepSession> session(new StepSession);
  session->model_ = model;
  session->batch_ = batch;
  session->steps_per_epoch_ = data.rows / batch;
  session->order_ = EpochOrder(data.rows, kSeed, /*epoch=*/0);
  ASSIGN_OR_RETURN(Graph graph,
                   BuildTrainStep(model, optimizer, data.rows, batch));
  CompileOptions options = compile;
  options.dump_dir.clear();  // of what is trained, not of what is measured
  ASSIGN_OR_RETURN(session->compiled_, Compile(std::move(graph), options));
  RETURN_IF_ERROR(session->Allocate(optimizer));
  Executable& executable = session->executable();
  RETURN_IF_ERROR(BindData(executable, data));
  RETURN_IF_ERROR(BindTensors(executable, session->params_));
  RETURN_IF_ERROR(BindTensors(executable, session->states_));
  RETURN_IF_ERROR(session->Reset(0));
  return session;
}

absl::Status StepSession::Allocate(const OptimizerSpec& optimizer) {
  ASSIGN_OR_RETURN(params_, InitParams(model_, Init::kHe, kSeed));
  ASSIGN_OR_RETURN(states_, InitOptimizerState(model_, optimizer));
  for (std::vector<float>* array :
       {&lrs_, &step_numbers_, &losses_, &corrects_}) {
    array->resize(steps_per_epoch_);
  }
  return absl::OkStatus();
}

absl::Status StepSession::Reset(float lr) {
  // The executable knows the tensors by their addresses, so that the values
  // are copied into them.
  ASSIGN_OR_RETURN(const std::vector<Tensor> first,
                   InitParams(model_, Init::kHe, kSeed));
  for (size_t i = 0; i < params_.size(); ++i) {
    std::memcpy(params_[i].data.data(), first[i].data.data(),
                first[i].data.bytes());
  }
  for (Tensor& state : states_) {
    std::memset(state.data.data(), 0, state.data.bytes());
  }
  executable().ParamsChanged();
  std::fill(lrs_.begin(), lrs_.end(), lr);
  epochs_done_ = 0;
  return StartEpoch(1);
}

absl::Status StepSession::StartEpoch(int64_t first_step_number) {
  next_step_ = 0;
  std::iota(step_numbers_.begin(), step_numbers_.end(),
            static_cast<float>(first_step_number));
  constexpr int64_t kFloat = sizeof(float);
  const auto bind = [this](const char* name, void* data, int64_t stride) {
    return executable().Bind(name, data, stride, steps_per_epoch_);
  };
  RETURN_IF_ERROR(bind("indices", order_.data(), batch_ * sizeof(int32_t)));
  RETURN_IF_ERROR(bind("lr", lrs_.data(), kFloat));
  if (compiled_.graph.FindLeaf("step") != nullptr) {
    RETURN_IF_ERROR(bind("step", step_numbers_.data(), kFloat));
  }
  RETURN_IF_ERROR(bind("loss", losses_.data(), kFloat));
  return bind("correct", corrects_.data(), kFloat);
}

absl::Status StepSession::Run(int64_t steps) {
  return RunParts(steps, [this](int64_t n) { return executable().Run(n); });
}

absl::Status StepSession::RunTraced(int64_t steps,
                                    std::vector<StepTrace>& traces) {
  return RunParts(steps, [&](int64_t n) {
    return executable().RunTraced(n, traces.emplace_back());
  });
}

absl::Status StepSession::RunParts(
    int64_t steps, absl::FunctionRef<absl::Status(int64_t n)> run) {
  while (steps > 0) {
    if (next_step_ == steps_per_epoch_) {
      ++epochs_done_;
      RETURN_IF_ERROR(StartEpoch(epochs_done_ * steps_per_epoch_ + 1));
    }
    const int64_t count = std::min(steps, steps_per_epoch_ - next_step_);
    RETURN_IF_ERROR(run(count));
    next_step_ += count;
    steps -= count;
  }
  return absl::OkStatus();
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsUnavailable(status) ||
         absl::IsResourceExhausted(status);
}

double TextbookFlops(const ModelSpec& model, int64_t batch) {
  double products = 0;  // multiply-adds per row
  for (int i = 0; i < model.layers(); ++i) {
    const double weights =
        static_cast<double>(model.widths[i]) * model.widths[i + 1];
    products += (i == 0 ? 2 : 3) * weights;
  }
  return 2 * products * static_cast<double>(batch);
}

}  // namespace onestep
