// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_MATMULS_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_MATMULS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_handle.h"

namespace onestep {

// The library's matmuls of one executable: each planned once, all with one
// workspace that lives as long as they do.
class CudaMatMuls {
 public:
  // As NVIDIA advises for Hopper; without one, split-k is not to be had.
  static constexpr int64_t kWorkspaceBytes = 32 << 20;

  // `stream` is used for timing and must outlive this.
  CudaMatMuls(CudaApi& cuda, CudaApi::Stream stream)
      : cuda_(cuda), stream_(stream) {}

  // Unimplemented: the library has no algorithm. Unavailable: no library.
  absl::StatusOr<CudaApi::MatMulPlan> Plan(const CudaMatMul& matmul);

 private:
  CudaApi& cuda_;
  CudaApi::Stream stream_;
  CudaMemory workspace_;
  std::vector<std::pair<CudaMatMul, CudaMatMulPlan>> plans_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_MATMULS_H_
