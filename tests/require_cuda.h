// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_REQUIRE_CUDA_H_
#define ONESTEP_TESTS_REQUIRE_CUDA_H_

#include <cstdlib>
#include <cstring>

namespace onestep {

// Whether a test that wants a GPU must fail without one, not skip.
inline bool CudaIsRequired() {
  const char* const require = std::getenv("ONESTEP_REQUIRE_CUDA");
  return require != nullptr && std::strcmp(require, "1") == 0;
}

}  // namespace onestep

#endif  // ONESTEP_TESTS_REQUIRE_CUDA_H_
