// SPDX-License-Identifier: Apache-2.0
// What a test can see of the calls an EmulatedCuda was given, and the errors
// that CUDA would answer with.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_CALL_LOG_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_CALL_LOG_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace onestep {

// CUDA's error codes that the emulation answers with.
enum CudaErrorCode : int {
  kCudaInvalidValue = 1,
  kCudaOutOfMemory = 2,
  kCudaInvalidConfiguration = 9,
  kCudaInsufficientDriver = 35,
  kCudaNoDevice = 100,
  kCudaInvalidHandle = 400,
  kCudaIllegalState = 401,
  kCudaNotReady = 600,
  kCudaIllegalAddress = 700,
  kCudaLaunchFailure = 719,
  kCudaCaptureUnsupported = 900,
  kCudaCaptureInvalidated = 901,
  kCudaCaptureImplicit = 906,
  kCudaInvalidClusterSize = 912,
};

// "cudaMalloc: out of memory (2)", then ": " and the detail. `call` is the
// name of a function of CudaApi. ResourceExhausted for kCudaOutOfMemory,
// Unavailable for a missing device or driver, else Internal.
absl::Status CudaError(std::string_view call, int code,
                       std::string_view detail = "");

// Whether it is the name of a function of CudaApi that returns a status.
bool IsCudaCall(std::string_view call);

struct CudaCall {
  std::string name = "";    // of the function of CudaApi, or "LazyLoad"
  std::string detail = "";  // the kernel's name, the matmul, the graph
  int64_t stream = 0;       // the number of its handle; 0: none
  int64_t bytes = 0;
};

class CallLog {
 public:
  void Add(CudaCall call) { calls_.push_back(std::move(call)); }
  const std::vector<CudaCall>& calls() const { return calls_; }

  // What follows is about the calls since the last mark.
  void Mark() { mark_ = calls_.size(); }
  int Count(std::string_view name) const;
  // "CopyToDevice 2, LaunchGraph 1", by name; "" when there was none.
  std::string Counts() const;
  // One call a line: "LaunchKernel AddOne on stream 1", "Malloc 256 bytes".
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const CallLog& log) {
    return out << log.ToString();
  }

 private:
  std::vector<CudaCall> calls_;
  size_t mark_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_CALL_LOG_H_
