// SPDX-License-Identifier: Apache-2.0
#include "trainer/train_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/nvtx.h"
#include "runtime/base/status.h"
#include "trainer/bind.h"
#include "trainer/data/split.h"
#include "trainer/finite.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough that what is done between slices costs nothing, short enough
// for a smooth progress line and a prompt Ctrl-C.
constexpr double kSliceSeconds = 0.05;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainLoop>> TrainLoop::Create(
    const Config& config, const Dataset& data, int64_t rows) {
  CHECK(rows > 0);
  std::unique_ptr<TrainLoop> loop(new TrainLoop);
  loop->rows_ = rows;
  loop->shuffle_seed_ = config.shuffle_seed.value_or(config.seed);
  loop->full_steps_ = rows / config.batch;
  const int64_t tail = rows % config.batch;
  RETURN_IF_ERROR(loop->Allocate(config));
  if (loop->full_steps_ > 0) {
    ASSIGN_OR_RETURN(loop->full_, loop->CompilePart(config, data, config.batch,
                                                    /*dump=*/true));
  }
  if (tail > 0) {
    const bool dump = loop->full_steps_ == 0;
    ASSIGN_OR_RETURN(loop->tail_, loop->CompilePart(config, data, tail, dump));
  }
  const int64_t steps = loop->steps_per_epoch();
  loop->schedule_ = {config.lr_schedule, config.lr, config.warmup,
                     steps * config.epochs};
  for (std::vector<float>* array :
       {&loop->lrs_, &loop->step_numbers_, &loop->losses_, &loop->corrects_}) {
    array->resize(steps);
  }
  return loop;
}

absl::Status TrainLoop::Allocate(const Config& config) {
  ASSIGN_OR_RETURN(params_, InitParams(config.model, config.init, config.seed));
  ASSIGN_OR_RETURN(states_, InitOptimizerState(config.model, config.optimizer));
  for (std::vector<Tensor>* tensors : {&params_, &states_}) {
    for (Tensor& tensor : *tensors) {
      tensors_.push_back(&tensor);
      ASSIGN_OR_RETURN(Buffer saved, Buffer::Create(tensor.data.bytes()));
      saved_.push_back(std::move(saved));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainLoop::Part> TrainLoop::CompilePart(const Config& config,
                                                       const Dataset& data,
                                                       int64_t batch,
                                                       bool dump) {
  Part part;
  part.batch = batch;
  CompileOptions options = config.compile;
  if (!dump) options.dump_dir.clear();
  ASSIGN_OR_RETURN(Graph graph, BuildTrainStep(config.model, config.optimizer,
                                               data.rows, batch));
  ASSIGN_OR_RETURN(part.compiled, Compile(std::move(graph), options));
  Executable& executable = *part.compiled.executable;
  RETURN_IF_ERROR(BindData(executable, data));
  RETURN_IF_ERROR(BindTensors(executable, params_));
  RETURN_IF_ERROR(BindTensors(executable, states_));
  return part;
}

double TrainLoop::compile_ms() const {
  return full_.compiled.ms + tail_.compiled.ms;
}

int64_t TrainLoop::RowsOf(int64_t step) const {
  return step < full_steps_ ? full_.batch : tail_.batch;
}

void TrainLoop::StartEpoch(int64_t epoch) {
  epoch_ = epoch;
  order_ = EpochOrder(rows_, shuffle_seed_, epoch - 1);
  for (int64_t step = 0; step < steps_per_epoch(); ++step) {
    const int64_t done = (epoch - 1) * steps_per_epoch() + step;
    lrs_[step] = static_cast<float>(LearningRate(schedule_, done));
    step_numbers_[step] = static_cast<float>(done + 1);
  }
}

absl::StatusOr<EpochResult> TrainLoop::RunEpoch(int64_t epoch,
                                                const Poll& poll) {
  const ScopedRange range("epoch", epoch, 1);
  const Clock::time_point start = Clock::now();
  StartEpoch(epoch);
  const int64_t steps = steps_per_epoch();
  for (int64_t first = 0; first < steps;) {
    if (!poll(first, losses_[(first + steps - 1) % steps])) {
      return absl::CancelledError("stopped");
    }
    const Range slice = {first, std::min(slice_steps_, steps - first)};
    Save();
    const Clock::time_point slice_start = Clock::now();
    RETURN_IF_ERROR(RunSteps(slice));
    const double step_seconds = SecondsSince(slice_start) / slice.count;
    RETURN_IF_ERROR(CheckFinite(slice));
    first += slice.count;
    steps_done_ += slice.count;
    slice_steps_ = std::clamp<int64_t>(
        static_cast<int64_t>(kSliceSeconds / std::max(step_seconds, 1e-9)), 1,
        steps);
  }
  return Summarize(epoch, SecondsSince(start));
}

absl::Status TrainLoop::RunSteps(const Range& range) {
  const int64_t end = range.first + range.count;
  const int64_t full = std::min(end, full_steps_) - range.first;
  if (full > 0) RETURN_IF_ERROR(RunPart(full_, {range.first, full}));
  if (range.count > 0 && end > full_steps_) {
    RETURN_IF_ERROR(RunPart(tail_, {full_steps_, 1}));
  }
  return newest_ == nullptr ? absl::OkStatus()
                            : newest_->compiled.executable->ParamsToHost();
}

// Before `part` runs, where the params are not on the host alone.
absl::Status TrainLoop::TakeParams(Part& part) {
  if (newest_ == &part) return absl::OkStatus();
  if (newest_ != nullptr) {
    RETURN_IF_ERROR(newest_->compiled.executable->ParamsToHost());
  }
  part.compiled.executable->ParamsChanged();
  newest_ = &part;
  return absl::OkStatus();
}

absl::Status TrainLoop::RunPart(Part& part, const Range& range) {
  RETURN_IF_ERROR(TakeParams(part));
  Executable& executable = *part.compiled.executable;
  constexpr int64_t kFloat = sizeof(float);
  const int64_t first = range.first;
  // Every step before this one had a whole batch.
  RETURN_IF_ERROR(executable.Bind("indices",
                                  order_.data() + first * full_.batch,
                                  part.batch * sizeof(int32_t)));
  RETURN_IF_ERROR(executable.Bind("lr", lrs_.data() + first, kFloat));
  if (part.compiled.graph.FindLeaf("step") != nullptr) {
    RETURN_IF_ERROR(
        executable.Bind("step", step_numbers_.data() + first, kFloat));
  }
  RETURN_IF_ERROR(executable.Bind("loss", losses_.data() + first, kFloat));
  RETURN_IF_ERROR(executable.Bind("correct", corrects_.data() + first, kFloat));
  return Execute(part, range.count);
}

absl::Status TrainLoop::Execute(const Part& part, int64_t steps) {
  Executable& executable = *part.compiled.executable;
  if (&part == &full_ && steps_to_trace_ > 0) {
    const int64_t traced = std::min(steps, steps_to_trace_);
    const absl::Status status =
        executable.RunTraced(traced, traces_.emplace_back());
    if (!status.ok()) traces_.pop_back();
    if (absl::IsUnimplemented(status)) {  // a kernel of many steps
      trace_refused_ = std::string(status.message());
      steps_to_trace_ = 0;
    } else {
      RETURN_IF_ERROR(status);
      steps_to_trace_ -= traced;
      steps -= traced;
    }
  }
  return steps == 0 ? absl::OkStatus() : executable.Run(steps);
}

void TrainLoop::Save() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    std::memcpy(saved_[i].data(), tensors_[i]->data.data(), saved_[i].bytes());
  }
}

void TrainLoop::Restore() {
  newest_ = nullptr;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    std::memcpy(tensors_[i]->data.data(), saved_[i].data(), saved_[i].bytes());
  }
}

absl::Status TrainLoop::CheckFinite(const Range& range) {
  const auto params_finite = [this] {
    return std::all_of(params_.begin(), params_.end(), [](const Tensor& p) {
      return AllFinite(p.data.as<float>(), p.num_elements());
    });
  };
  int64_t good = 0;  // steps of the slice whose loss is finite
  while (good < range.count && std::isfinite(losses_[range.first + good])) {
    ++good;
  }
  if (good == range.count && params_finite()) return absl::OkStatus();
  steps_to_trace_ = 0;  // what follows is a replay

  std::string what = "the weights are not finite after";
  int64_t bad_step = range.first + range.count;  // counts from 1
  if (good < range.count) {
    what = absl::StrCat("the loss is ", losses_[range.first + good], " at");
    bad_step = range.first + good + 1;
  }
  // The slice began with finite weights, and weights that are not stay so: the
  // last finite ones are found by bisection. A step is replayed bit by bit.
  int64_t replayed = 0;
  for (int64_t bad = good + 1; bad - replayed > 1;) {
    const int64_t steps = replayed + (bad - replayed + (bad > good)) / 2;
    Restore();
    RETURN_IF_ERROR(RunSteps({range.first, steps}));
    (params_finite() ? replayed : bad) = steps;
  }
  Restore();
  RETURN_IF_ERROR(RunSteps({range.first, replayed}));
  steps_done_ += replayed;
  return absl::OutOfRangeError(absl::StrCat("diverged: ", what, " epoch ",
                                            epoch_, ", step ", bad_step,
                                            "; a lower --lr may help"));
}

EpochResult TrainLoop::Summarize(int64_t epoch, double seconds) const {
  EpochResult result;
  result.epoch = epoch;
  const double rows = static_cast<double>(rows_);
  for (int64_t step = 0; step < steps_per_epoch(); ++step) {
    result.loss += losses_[step] * static_cast<double>(RowsOf(step));
    result.train_accuracy += corrects_[step];
  }
  result.loss /= rows;
  result.train_accuracy /= rows;
  result.seconds = seconds;
  result.us_per_step = seconds * 1e6 / static_cast<double>(steps_per_epoch());
  result.samples_per_second = rows / seconds;
  return result;
}

}  // namespace onestep
