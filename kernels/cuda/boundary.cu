// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/boundary.cuh"

namespace onestep::cuda {

Launch StepBoundary(const BoundaryParams& params) {
  return Sized(ONESTEP_LAUNCH(StepBoundary, params), 1, kBoundaryThreads);
}

Launch Advance(StepControl* control, int64_t steps) {
  const AdvanceArgs args = {control, steps};
  return Sized(ONESTEP_LAUNCH(Advance, args), 1, kWarpSize);
}

}  // namespace onestep::cuda
