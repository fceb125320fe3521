// SPDX-License-Identifier: Apache-2.0
// What CudaApi creates, destroyed where its owner goes out of scope:
//
//   ASSIGN_OR_RETURN(CudaStream stream, Own<CudaStream>(cuda,
//                                                       cuda.CreateStream()));
//
// Members are destroyed last to first: declare memory before the graphs that
// use it, and those before the stream.
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_HANDLE_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_HANDLE_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_api.h"

namespace onestep {

// Owns one handle of type T, or none. The CudaApi must outlive it.
template <typename T, void (CudaApi::*kDestroy)(T)>
class CudaHandle {
 public:
  using Value = T;

  CudaHandle() = default;
  CudaHandle(CudaApi& cuda, T value) : cuda_(&cuda), value_(value) {}
  CudaHandle(CudaHandle&& other) noexcept
      : cuda_(other.cuda_), value_(std::exchange(other.value_, nullptr)) {}
  CudaHandle& operator=(CudaHandle&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~CudaHandle() {
    if (value_ != nullptr) (cuda_->*kDestroy)(value_);
  }

  T get() const { return value_; }
  explicit operator bool() const { return value_ != nullptr; }

 private:
  CudaApi* cuda_ = nullptr;
  T value_ = nullptr;
};

using CudaStream = CudaHandle<CudaApi::Stream, &CudaApi::DestroyStream>;
using CudaEvent = CudaHandle<CudaApi::Event, &CudaApi::DestroyEvent>;
using CudaGraph = CudaHandle<CudaApi::Graph, &CudaApi::DestroyGraph>;
using CudaGraphExec =
    CudaHandle<CudaApi::GraphExec, &CudaApi::DestroyGraphExec>;
using CudaMemory = CudaHandle<void*, &CudaApi::Free>;
using CudaPinnedMemory = CudaHandle<void*, &CudaApi::FreeHost>;
using CudaMatMulPlan =
    CudaHandle<CudaApi::MatMulPlan, &CudaApi::DestroyMatMulPlan>;

// The owner of what a call made, or the call's error.
template <typename Handle>
absl::StatusOr<Handle> Own(CudaApi& cuda,
                           absl::StatusOr<typename Handle::Value> made) {
  if (!made.ok()) return made.status();
  return Handle(cuda, *made);
}

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_HANDLE_H_
