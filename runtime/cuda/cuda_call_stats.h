// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_CALL_STATS_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_CALL_STATS_H_

#include <cstdint>
#include <string>

namespace onestep {

// A line of a GPU API summary: the calls of one function.
struct CudaCallStats {
  std::string call;  // "LaunchGraph" of CudaApi, "cudaGraphLaunch_v10000"
  int64_t calls = 0;
  double total_us = 0;  // on the host's clock, from the call to its return
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_CALL_STATS_H_
