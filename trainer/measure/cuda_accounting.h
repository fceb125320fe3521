// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_CUDA_ACCOUNTING_H_
#define ONESTEP_TRAINER_MEASURE_CUDA_ACCOUNTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_call_stats.h"
#include "runtime/cuda/timed_cuda.h"
#include "trainer/measure/step_session.h"

namespace onestep {

// What was asked of CUDA while steps ran undisturbed.
struct CudaAccounting {
  std::string source;  // "timers around each call", "CUPTI"
  std::string note;    // why there is nothing; "": there is
  std::vector<CudaCallStats> calls;
  int64_t steps = 0;
  double us = 0;  // of all these steps
};

// Runs `runs` times `steps` steps for each of two accounts: by `timed`, which
// the session calls, and by CUPTI, or why it cannot count.
absl::StatusOr<std::vector<CudaAccounting>> AccountForCalls(
    StepSession& session, TimedCuda& timed, int64_t steps, int64_t runs);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_CUDA_ACCOUNTING_H_
