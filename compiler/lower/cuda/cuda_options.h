// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_CUDA_CUDA_OPTIONS_H_
#define ONESTEP_COMPILER_LOWER_CUDA_CUDA_OPTIONS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cuda/hidden_split/tier.h"
#include "runtime/cuda/cuda_api.h"

namespace onestep {

const char* ToString(CudaTier tier);
const char* ToString(CudaFirstLayer first_layer);

struct CudaOptions {
  CudaApi* cuda = nullptr;  // null: what FindCuda finds
  // Without a device, plan for an sm_90 device; the program cannot run then.
  bool plan_only = false;
  MathMode math = MathMode::kFp32;
  CudaTier tier = CudaTier::kAuto;
  CudaFirstLayer first_layer = CudaFirstLayer::kAuto;
  // Steps of one graph. 0: chosen by the costs below, or by the number of nodes
  // where they are not known.
  int64_t steps_per_launch = 0;
  // The measured cost of a node of a graph and of a graph's launch; 0: not
  // known.
  double node_us = 0, graph_launch_us = 0;
  // Device memory for the data. The rows of larger data are copied as steps
  // need them. 0: what is free.
  int64_t table_limit_bytes = 0;

  // Unavailable: there is no CUDA, with the reason.
  absl::StatusOr<CudaApi*> Api() const {
    if (cuda != nullptr) return cuda;
    return FindCuda();
  }
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_OPTIONS_H_
