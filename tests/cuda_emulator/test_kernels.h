// SPDX-License-Identifier: Apache-2.0
// Launchers of the kernels of emulated_cuda_test.cc.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_TEST_KERNELS_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_TEST_KERNELS_H_

#include <cstdint>

#include "kernels/launch.h"

namespace onestep {

Launch AddLaunch(float* x, float value, int64_t n);     // x += value
Launch ScaleLaunch(float* x, float factor, int64_t n);  // x *= factor
Launch CopyLaunch(const float* x, float* y, int64_t n);
Launch TrapLaunch();
// Ordinary, but may have programmatic edges.
Launch WaitingAddLaunch(float* x, float value, int64_t n);

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_TEST_KERNELS_H_
