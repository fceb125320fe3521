// SPDX-License-Identifier: Apache-2.0
// Lowering to CUDA kernels of ours (kernels/cuda): a Lower<Kind> for every op
// whose row of ops.def names kCuda, in the file of its family.
#ifndef ONESTEP_COMPILER_LOWER_CUDA_CUDA_OP_H_
#define ONESTEP_COMPILER_LOWER_CUDA_CUDA_OP_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/lower/memory_plan.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"
#include "runtime/cuda/cuda_bindings.h"

namespace onestep {

// A kernel of ours for slots of memory.
struct CudaKernel {
  std::function<Launch(const CudaBindings&, void* workspace)> launch;
  int64_t workspace_bytes = 0;  // of its own, zeroed once
};

// The kernel for the node; Unimplemented, naming the op, when there is none.
// Matmuls too.
absl::StatusOr<CudaKernel> MakeCudaKernel(const MemoryPlan& plan, Node& node);

// Of slots, for what an op needs besides its kernel.
CudaKernel CopyKernel(int from, int to, int64_t bytes);
CudaKernel ActivateKernel(Activation activation, int slot, int64_t n);
CudaKernel AddKernelOf(int a, int b, int y, int64_t n);

namespace gpu {

using At = const CudaBindings&;

inline int64_t Cols(const TensorType& type) {
  return type.rank() == 0 ? 1 : type.dims.back();
}
inline int64_t Rows(const TensorType& type) {
  return type.num_elements() / Cols(type);
}

// Where an operand or result is: the models' lie `stride_bytes` apart, or all
// share one.
struct Place {
  int slot = -1;  // -1: there is none
  int64_t stride_bytes = 0;
};

// A node that becomes a kernel. Lowerings give closures that hold no pointer to
// it.
class CudaOp {
 public:
  CudaOp(const MemoryPlan& plan, Node& node) : plan_(plan), node_(node) {}

  Node& node() const { return node_; }
  template <typename A>
  const A& attrs() const {
    return node_.as<A>();
  }
  // There is none of no value.
  Place PlaceOf(Value value) const;
  Place In(int i) const { return PlaceOf(node_.operands[i]); }
  Place Out(int i = 0) const { return PlaceOf(node_.result(i)); }
  const TensorType& in_type(int i) const { return node_.operands[i].type(); }
  const TensorType& out_type() const { return node_.types[0]; }
  int64_t n() const { return node_.types[0].num_elements(); }

 private:
  const MemoryPlan& plan_;
  Node& node_;
};

template <typename T>
cuda::PerModel<T> Of(At at, Place place) {
  if (place.slot < 0) return nullptr;
  return {static_cast<T*>(at.at(place.slot)), place.stride_bytes};
}
inline cuda::Out F32(At at, Place place) { return Of<float>(at, place); }
// Labels and numbers of rows, which all models share.
inline const int32_t* I32(At at, Place place) {
  return Of<const int32_t>(at, place).first;
}

// fn(at) -> Launch, without a workspace.
template <typename Fn>
CudaKernel Plain(Fn fn) {
  return {[fn](At at, void*) { return fn(at); }, 0};
}

#define OP(kind, ...) CudaKernel Lower##kind(const CudaOp& op);
#include "compiler/ir/ops.def"
#undef OP

}  // namespace gpu
}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_OP_H_
