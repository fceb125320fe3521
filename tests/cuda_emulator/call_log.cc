// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/call_log.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace onestep {
namespace {

const std::map<std::string_view, const char*>& CudaFunctions() {
  static const auto& functions = *new std::map<std::string_view, const char*>{
      {"AddChildGraph", "cudaGraphAddNode"},
      {"AddKernel", "cudaGraphAddNode"},
      {"BeginCapture", "cudaStreamBeginCapture"},
      {"CopyToDevice", "cudaMemcpyAsync"},
      {"CopyToHost", "cudaMemcpyAsync"},
      {"CreateEvent", "cudaEventCreate"},
      {"CreateGraph", "cudaGraphCreate"},
      {"CreateStream", "cudaStreamCreateWithFlags"},
      {"Device", "cudaGetDeviceProperties"},
      {"Done", "cudaStreamQuery"},
      {"Elapsed", "cudaEventElapsedTime"},
      {"EndCapture", "cudaStreamEndCapture"},
      {"FreeMemory", "cudaMemGetInfo"},
      {"Instantiate", "cudaGraphInstantiate"},
      {"LaunchGraph", "cudaGraphLaunch"},
      {"LaunchKernel", "cudaLaunchKernelExC"},
      {"Malloc", "cudaMalloc"},
      {"MallocHost", "cudaHostAlloc"},
      {"MatMulLibrary", "cublasLtCreate"},
      {"MaxActiveClusters", "cudaOccupancyMaxActiveClusters"},
      {"Memset", "cudaMemsetAsync"},
      {"Nodes", "cudaGraphGetNodes"},
      {"PlanMatMul", "cublasLtMatmulAlgoGetHeuristic"},
      {"Preload", "cudaFuncSetAttribute"},
      {"Record", "cudaEventRecord"},
      {"RunMatMul", "cublasLtMatmul"},
      {"Synchronize", "cudaStreamSynchronize"},
      {"Wait", "cudaStreamWaitEvent"},
      {"WaitOnHost", "cudaEventSynchronize"},
      {"WriteDot", "cudaGraphDebugDotPrint"},
  };
  return functions;
}

const char* MeaningOf(int code) {
  switch (code) {
    case kCudaInvalidValue:
      return "invalid argument";
    case kCudaOutOfMemory:
      return "out of memory";
    case kCudaInvalidConfiguration:
      return "invalid configuration argument";
    case kCudaInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case kCudaNoDevice:
      return "no CUDA-capable device is detected";
    case kCudaInvalidHandle:
      return "invalid resource handle";
    case kCudaIllegalState:
      return "the operation cannot be performed in the present state";
    case kCudaNotReady:
      return "device not ready";
    case kCudaIllegalAddress:
      return "an illegal memory access was encountered";
    case kCudaLaunchFailure:
      return "unspecified launch failure";
    case kCudaCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case kCudaCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case kCudaCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing "
             "blocking stream";
    case kCudaInvalidClusterSize:
      return "cluster misconfiguration";
  }
  return "unknown error";
}

absl::StatusCode StatusCodeOf(int code) {
  switch (code) {
    case kCudaOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case kCudaNoDevice:
    case kCudaInsufficientDriver:
      return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::Status CudaError(std::string_view call, int code,
                       std::string_view detail) {
  const auto found = CudaFunctions().find(call);
  const std::string function =
      found == CudaFunctions().end() ? std::string(call) : found->second;
  std::string text =
      absl::StrCat(function, ": ", MeaningOf(code), " (", code, ")");
  if (!detail.empty()) absl::StrAppend(&text, ": ", std::string(detail));
  return absl::Status(StatusCodeOf(code), text);
}

bool IsCudaCall(std::string_view call) {
  return CudaFunctions().count(call) != 0;
}

int CallLog::Count(std::string_view name) const {
  int count = 0;
  for (size_t i = mark_; i < calls_.size(); ++i)
    count += calls_[i].name == name;
  return count;
}

std::string CallLog::Counts() const {
  std::map<std::string, int> counts;
  for (size_t i = mark_; i < calls_.size(); ++i) ++counts[calls_[i].name];
  std::string text;
  for (const auto& [name, count] : counts) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", count);
  }
  return text;
}

std::string CallLog::ToString() const {
  std::string text;
  for (size_t i = mark_; i < calls_.size(); ++i) {
    const CudaCall& call = calls_[i];
    absl::StrAppend(&text, call.name);
    if (!call.detail.empty()) absl::StrAppend(&text, " ", call.detail);
    if (call.bytes != 0) absl::StrAppend(&text, " ", call.bytes, " bytes");
    if (call.stream != 0) absl::StrAppend(&text, " on stream ", call.stream);
    text += '\n';
  }
  return text;
}

}  // namespace onestep
