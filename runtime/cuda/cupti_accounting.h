// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUPTI_ACCOUNTING_H_
#define ONESTEP_RUNTIME_CUDA_CUPTI_ACCOUNTING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_call_stats.h"

namespace onestep {

// The calls of the CUDA runtime and driver in this process, by whomever, as
// NVIDIA's CUPTI tells of them: also those that cublasLt makes. A call that
// another one makes is part of that one and not listed. It makes every call
// slower: what it counts is not to be timed otherwise meanwhile.
class CuptiAccounting {
 public:
  // Counts from here on. `library`: the file to load; "": libcupti of the
  // CUDA that this was built for. Unavailable, with the reason: built without
  // cupti.h, no library, no driver, or another tool has CUPTI.
  static absl::StatusOr<std::unique_ptr<CuptiAccounting>> Create(
      const std::string& library = "");
  virtual ~CuptiAccounting() = default;

  // Of the calls that returned since Create or Reset; the most time first.
  virtual std::vector<CudaCallStats> Stats() const = 0;
  virtual void Reset() = 0;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUPTI_ACCOUNTING_H_
