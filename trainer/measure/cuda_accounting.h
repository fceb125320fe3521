// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_CUDA_ACCOUNTING_H_
#define ONESTEP_TRAINER_MEASURE_CUDA_ACCOUNTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_api.h"
#include "trainer/measure/step_session.h"

namespace onestep {

// The calls of CUDA during some untraced steps.
struct CudaAccounting {
  // Why the calls are not counted, as a sentence; "": they are.
  std::string note;
  std::vector<CudaCallStats> calls;
  int64_t steps = 0;
  double us = 0;  // of all these steps together
};

// Runs `runs` times `steps` steps while `cuda`, which the session uses, counts
// the calls; runs nothing where it cannot count them.
absl::StatusOr<CudaAccounting> AccountForCalls(StepSession& session,
                                               CudaApi& cuda, int64_t steps,
                                               int64_t runs);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_CUDA_ACCOUNTING_H_
