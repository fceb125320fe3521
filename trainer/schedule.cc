// SPDX-License-Identifier: Apache-2.0
#include "trainer/schedule.h"

#include <cmath>
#include <numbers>

namespace onestep {

double LearningRate(const Schedule& schedule, int64_t step) {
  const double lr = schedule.lr;
  const int64_t total = schedule.total_steps;
  if (step < schedule.warmup_steps) {
    return lr * static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmup_steps);
  }
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return lr;
    case ScheduleKind::kCosine: {
      if (step >= total) return 0;
      const double done = static_cast<double>(step - schedule.warmup_steps) /
                          static_cast<double>(total - schedule.warmup_steps);
      return lr * 0.5 * (1 + std::cos(std::numbers::pi * done));
    }
    case ScheduleKind::kStep:
      if (step < total - total / 2) return lr;
      return step < total - total / 4 ? lr * 0.1 : lr * 0.01;
  }
  return lr;
}

}  // namespace onestep
