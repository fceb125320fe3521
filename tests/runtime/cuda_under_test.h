// SPDX-License-Identifier: Apache-2.0
// Which CUDA cuda_conformance_test.cc is about is decided when linking.
#ifndef ONESTEP_TESTS_RUNTIME_CUDA_UNDER_TEST_H_
#define ONESTEP_TESTS_RUNTIME_CUDA_UNDER_TEST_H_

#include "runtime/cuda/cuda_api.h"

namespace onestep {

CudaApi& CudaUnderTest();

}  // namespace onestep

#endif  // ONESTEP_TESTS_RUNTIME_CUDA_UNDER_TEST_H_
