// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_CALL_STATS_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_CALL_STATS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace onestep {

// A line of a GPU API summary: the calls of one function.
struct CudaCallStats {
  std::string call;  // "cudaGraphLaunch_v10000"
  int64_t calls = 0;
  double total_us = 0;  // on the host's clock, from each call to its return
};

// Counts calls of CUDA from its creation to its destruction.
class CudaCallCounter {
 public:
  virtual ~CudaCallCounter() = default;
  // Of the calls that have returned; the one with the most time first.
  virtual std::vector<CudaCallStats> Stats() const = 0;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_CALL_STATS_H_
