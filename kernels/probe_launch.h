// SPDX-License-Identifier: Apache-2.0
// Launchers of the kernels that measure a GPU (probe.cu). As with kernels.h,
// nvcc compiles them for a device and g++ for the emulator.
#ifndef ONESTEP_KERNELS_PROBE_LAUNCH_H_
#define ONESTEP_KERNELS_PROBE_LAUNCH_H_

#include <cstdint>

#include "kernels/launch.h"

namespace onestep::cuda {

// A kernel that does nothing. With `waits` it lets the next launch start at
// once and waits for the one before it.
Launch ProbeEmpty(bool waits);

// y = x; n is a multiple of 4.
Launch ProbeCopy(const float* x, float* y, int64_t n);

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_PROBE_LAUNCH_H_
