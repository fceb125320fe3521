// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUPTI_ACCOUNTING_H_
#define ONESTEP_RUNTIME_CUDA_CUPTI_ACCOUNTING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_call_stats.h"

namespace onestep {

// Counts the calls of the CUDA runtime and driver that anything in this process
// makes, cublasLt too, as NVIDIA's CUPTI reports them. A call that another one
// makes is part of that one and not listed. Counting makes every call slower,
// so nothing else should be timed meanwhile.
//
// `library`: the file to load; "": the libcupti of the CUDA that this was built
// with. Unavailable, with the reason: no library, no driver, or another tool
// uses CUPTI.
absl::StatusOr<std::unique_ptr<CudaCallCounter>> CountCallsByCupti(
    const std::string& library = "");

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUPTI_ACCOUNTING_H_
