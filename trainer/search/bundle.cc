// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/bundle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/config.h"

namespace onestep {
namespace {

std::vector<Tensor*> TensorsOf(TrialState& trial) {
  std::vector<Tensor*> tensors;
  for (std::vector<Tensor>* const part : {&trial.params, &trial.states}) {
    for (Tensor& tensor : *part) tensors.push_back(&tensor);
  }
  return tensors;
}

}  // namespace

std::string KindOf(const Trial& trial) {
  const OptimizerSpec& optimizer = trial.optimizer;
  std::string kind = absl::StrCat(trial.model.ToString(), ", batch ",
                                  trial.batch, ", ", NameOf(optimizer.kind));
  if (optimizer.kind == OptimizerKind::kSgd && optimizer.weight_decay != 0) {
    absl::StrAppend(&kind, " with weight decay");
  }
  if (optimizer.kind == OptimizerKind::kMomentum && optimizer.nesterov) {
    absl::StrAppend(&kind, " (nesterov)");
  }
  if (trial.model.activation != ModelSpec().activation) {
    absl::StrAppend(&kind, ", ", NameOf(trial.model.activation));
  }
  if (trial.model.loss != ModelSpec().loss) {
    absl::StrAppend(&kind, ", ", NameOf(trial.model.loss));
  }
  return kind;
}

absl::StatusOr<Bundle> Bundle::Create(const RowPlan& plan,
                                      std::vector<TrialState*> trials,
                                      bool models_innermost) {
  CHECK(!trials.empty());
  Bundle bundle;
  bundle.plan_ = &plan;
  bundle.trials_ = std::move(trials);
  bundle.models_innermost_ = models_innermost;
  const int64_t models = bundle.models();
  for (Tensor* const tensor : TensorsOf(*bundle.trials_[0])) {
    if (models > 1) {
      ASSIGN_OR_RETURN(Buffer own,
                       Buffer::Create(models * tensor->data.bytes()));
      bundle.own_.push_back(std::move(own));
    }
    Buffer& memory = models > 1 ? bundle.own_.back() : tensor->data;
    bundle.tensors_.push_back({tensor->name, memory.as<float>()});
  }
  bundle.Copy(/*in=*/true);
  for (const TrialState* const trial : bundle.trials_) {
    bundle.momentums.push_back(trial->trial.optimizer.momentum);
    bundle.weight_decays.push_back(trial->trial.optimizer.weight_decay);
  }
  const int64_t steps = plan.StepsPerEpoch(bundle.trials_[0]->trial.batch);
  bundle.lrs.resize(steps * models);
  bundle.step_numbers.resize(steps);
  bundle.trained.losses.resize(steps * models);
  bundle.trained.corrects.resize(steps * models);
  bundle.evaluated.losses.resize(plan.Chunks() * models);
  bundle.evaluated.corrects.resize(plan.Chunks() * models);
  return bundle;
}

void Bundle::Copy(bool in) {
  const int64_t models = this->models();
  std::vector<std::vector<Tensor*>> tensors;
  for (TrialState* const trial : trials_) tensors.push_back(TensorsOf(*trial));
  for (size_t i = 0; i < own_.size(); ++i) {
    float* const ours = own_[i].as<float>();
    const int64_t n = tensors[0][i]->num_elements();
    std::vector<float*> theirs;
    for (const auto& of_trial : tensors) {
      theirs.push_back(of_trial[i]->data.as<float>());
    }
    for (int64_t e = 0; e < n; ++e) {
      for (int64_t lane = 0; lane < models; ++lane) {
        float& our = ours[models_innermost_ ? e * models + lane : lane * n + e];
        (in ? our : theirs[lane][e]) = in ? theirs[lane][e] : our;
      }
    }
  }
}

void Bundle::GiveBack() {
  if (!given_back_) Copy(/*in=*/false);
  given_back_ = true;
}

void Bundle::StartEpoch(int64_t epoch) {
  epoch_ = epoch;
  given_back_ = false;
  const int64_t steps = std::ssize(step_numbers);
  for (int64_t lane = 0; lane < models(); ++lane) {
    const Schedule schedule = {plan_->lr_schedule, trials_[lane]->trial.lr,
                               plan_->warmup, steps * plan_->epochs};
    for (int64_t step = 0; step < steps; ++step) {
      lrs[step * models() + lane] = static_cast<float>(
          LearningRate(schedule, (epoch - 1) * steps + step));
    }
  }
  for (int64_t step = 0; step < steps; ++step) {
    step_numbers[step] = static_cast<float>((epoch - 1) * steps + step + 1);
  }
}

bool Bundle::NoteDiverged(int64_t first, int64_t count) {
  bool any_left = false;
  const int64_t steps = std::ssize(step_numbers);
  for (int64_t lane = 0; lane < models(); ++lane) {
    int64_t& diverged_step = trials_[lane]->diverged_step;
    for (int64_t step = first; step < first + count && diverged_step == 0;
         ++step) {
      if (!std::isfinite(trained.losses[step * models() + lane])) {
        diverged_step = (epoch_ - 1) * steps + step + 1;
      }
    }
    any_left |= diverged_step == 0;
  }
  return any_left;
}

TrialEpoch Bundle::Summarize(int64_t lane) {
  TrialEpoch result;
  const int64_t steps = std::ssize(step_numbers);
  const int64_t batch = trials_[lane]->trial.batch;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t rows = std::min(batch, plan_->train_rows - step * batch);
    const int64_t i = step * models() + lane;
    result.loss += trained.losses[i] * static_cast<double>(rows);
    result.train_accuracy += trained.corrects[i];
  }
  result.loss /= static_cast<double>(plan_->train_rows);
  result.train_accuracy /= static_cast<double>(plan_->train_rows);

  if (plan_->validation_rows == 0) {
    result.validation_loss = result.validation_accuracy =
        std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  for (int64_t chunk = 0; chunk < plan_->Chunks(); ++chunk) {
    const int64_t rows = std::min(
        RowPlan::kChunk, plan_->validation_rows - chunk * RowPlan::kChunk);
    const int64_t i = chunk * models() + lane;
    result.validation_loss += evaluated.losses[i] * static_cast<double>(rows);
    result.validation_accuracy += evaluated.corrects[i];
  }
  result.validation_loss /= static_cast<double>(plan_->validation_rows);
  result.validation_accuracy /= static_cast<double>(plan_->validation_rows);
  int64_t& diverged_step = trials_[lane]->diverged_step;
  if (diverged_step == 0 && !std::isfinite(result.validation_loss)) {
    diverged_step = epoch_ * steps;
  }
  return result;
}

}  // namespace onestep
