// SPDX-License-Identifier: Apache-2.0
// Launchers of the kernels that measure a GPU (probe.cu). As for kernels.h,
// nvcc's build and the emulator's build both define them.
#ifndef ONESTEP_KERNELS_PROBE_LAUNCH_H_
#define ONESTEP_KERNELS_PROBE_LAUNCH_H_

#include <cstdint>

#include "kernels/launch.h"

namespace onestep::cuda {

// An empty kernel. With `waits` it uses programmatic dependent launch: it lets
// the next launch start at once and waits for the previous one.
Launch ProbeEmpty(bool waits);

// y = x over n values. REQUIRES: n is a multiple of 4.
Launch ProbeCopy(const float* x, float* y, int64_t n);

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_PROBE_LAUNCH_H_
