// SPDX-License-Identifier: Apache-2.0
// Short words for the tests of EmulatedCuda, where the calls cannot fail.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_CUDA_FIXTURE_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_CUDA_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/cuda_emulator/emulated_cuda.h"

namespace onestep {

// n floats of device memory, all of this value.
inline float* DeviceFloats(EmulatedCuda& cuda, int64_t n, float value) {
  auto* x =
      static_cast<float*>(cuda.Malloc(n * int64_t{sizeof(float)}).value());
  std::fill(x, x + n, value);
  return x;
}
inline float* DeviceFloats(EmulatedCuda& cuda,
                           const std::vector<float>& values) {
  float* x = DeviceFloats(cuda, static_cast<int64_t>(values.size()), 0);
  std::copy(values.begin(), values.end(), x);
  return x;
}
inline float* PinnedFloats(EmulatedCuda& cuda, int64_t n, float value) {
  auto* x =
      static_cast<float*>(cuda.MallocHost(n * int64_t{sizeof(float)}).value());
  std::fill(x, x + n, value);
  return x;
}

struct EmulatedCudaTest : testing::Test {
  float* Device(int64_t n, float value) { return DeviceFloats(cuda, n, value); }
  float* Device(const std::vector<float>& values) {
    return DeviceFloats(cuda, values);
  }

  EmulatedCuda cuda;
  const CudaApi::Stream stream = cuda.CreateStream().value();
};

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_CUDA_FIXTURE_H_
