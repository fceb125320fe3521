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
  // Without a device, plan for one of this kind; the executable cannot run.
  bool plan_only = false;
  MathMode math = MathMode::kFp32;
  CudaTier tier = CudaTier::kAuto;
  CudaFirstLayer first_layer = CudaFirstLayer::kAuto;
  // Of a graph. 0: by the costs below, or the number of its nodes.
  int64_t steps_per_launch = 0;
  // What a node of a graph and a graph's launch cost here; 0: not known.
  double node_us = 0, graph_launch_us = 0;
  // Device memory for the data; beyond it rows are brought as steps need them.
  // 0: what is free.
  int64_t table_limit_bytes = 0;

  // Unavailable: there is no CUDA, with the reason.
  absl::StatusOr<CudaApi*> Api() const {
    if (cuda != nullptr) return cuda;
    return FindCuda();
  }
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_OPTIONS_H_
