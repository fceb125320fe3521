// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_EMULATOR_TEST_KERNELS_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_EMULATOR_TEST_KERNELS_H_

#include <cstdint>

#include "kernels/launch.h"

namespace onestep::cuda {

Launch TestScale(const float* x, float alpha, float* y, int64_t n);

}  // namespace onestep::cuda

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_EMULATOR_TEST_KERNELS_H_
