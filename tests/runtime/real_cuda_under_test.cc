// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/cuda_under_test.h"

namespace onestep {

CudaApi& CudaUnderTest() { return *FindCuda().value(); }

}  // namespace onestep
