// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SCHEDULE_H_
#define ONESTEP_TRAINER_SCHEDULE_H_

#include <cstdint>

namespace onestep {

enum class ScheduleKind : uint8_t { kConstant, kCosine, kStep };

// The learning rate over a run, in train steps.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double lr = 0.1;  // the peak
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;  // of the run, warmup included
};

// The rate of step `step`, which counts from 0. During the warmup it rises
// linearly and reaches lr in the last warmup step. Then: constant; cosine, a
// half wave from lr down to 0 at the end of the run (Loshchilov and Hutter
// 2017, without restarts); step, a tenth of lr from the middle of the run on
// and a hundredth from its last quarter on.
double LearningRate(const Schedule& schedule, int64_t step);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SCHEDULE_H_
