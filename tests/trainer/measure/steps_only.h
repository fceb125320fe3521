// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_TRAINER_MEASURE_STEPS_ONLY_H_
#define ONESTEP_TESTS_TRAINER_MEASURE_STEPS_ONLY_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compiler.h"

namespace onestep {

// An executable that has steps and runs none.
class StepsOnly : public Executable {
 public:
  StepsOnly(std::vector<StepInfo> steps, int workers)
      : steps_(std::move(steps)), workers_(workers) {}
  absl::Status Bind(absl::string_view, void*, int64_t, int64_t) override {
    return absl::OkStatus();
  }
  absl::Status Run(int64_t) override { return absl::OkStatus(); }
  absl::Status RunTraced(int64_t, StepTrace&) override {
    return absl::OkStatus();
  }
  const std::vector<StepInfo>& steps() const override { return steps_; }
  int workers() const override { return workers_; }
  std::string lowering() const override { return ""; }
  const std::string& plan() const override { return plan_; }
  int64_t arena_bytes() const override { return 0; }

 private:
  std::vector<StepInfo> steps_;
  int workers_;
  std::string plan_;
};

inline Compiled CompiledOf(std::vector<StepInfo> steps, int workers = 1) {
  Compiled compiled;
  compiled.executable = std::make_unique<StepsOnly>(std::move(steps), workers);
  if (workers > 1) compiled.team.emplace();
  return compiled;
}

}  // namespace onestep

#endif  // ONESTEP_TESTS_TRAINER_MEASURE_STEPS_ONLY_H_
