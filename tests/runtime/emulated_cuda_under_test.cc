// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/runtime/cuda_under_test.h"

namespace onestep {

CudaApi& CudaUnderTest() {
  static EmulatedCuda* const cuda = new EmulatedCuda;
  return *cuda;
}

}  // namespace onestep
