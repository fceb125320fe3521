// SPDX-License-Identifier: Apache-2.0
// oneDNN behind plain structs: onednn.cc is the only file that includes
// dnnl.hpp, and what differs between oneDNN 2.6 and 3.x stays in it.
#ifndef ONESTEP_RUNTIME_CPU_ONEDNN_H_
#define ONESTEP_RUNTIME_CPU_ONEDNN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/activation.h"
#include "runtime/base/types.h"
#include "runtime/cpu/chain.h"

namespace onestep {

// Of the library that is loaded: "2.6.3".
std::string OnednnVersion();

// A matrix [rows, cols] in a slot of a chain, with strides in elements.
struct OnednnView {
  int slot = 0;
  DType dtype = DType::kF32;
  int64_t rows = 1, cols = 1;
  int64_t row_stride = 1, col_stride = 1;

  OnednnView Transposed() const {
    return {slot, dtype, cols, rows, col_stride, row_stride};
  }
};

enum class OnednnBinary : uint8_t { kAdd, kSub, kMul };

// A primitive that was made: the call to hand to the chain.
struct OnednnCall {
  Chain::Call call;
  std::string implementation;  // as oneDNN names it: "brg:avx512_core"
};

// Makes primitives over the slots of one chain. Each is created once, with
// its memory objects, scratchpad and argument list; running it creates and
// allocates nothing of ours. All return Unimplemented when oneDNN has no
// implementation but its reference loop (which would be a straw man) or no such
// activation, and Internal with oneDNN's message when it fails. A copy shares
// the engine, which the calls keep alive.
class Onednn {
 public:
  // `threads`: of the OpenMP team that primitives are made for and run on.
  // REQUIRES: chain outlives this and the calls.
  static absl::StatusOr<Onednn> Create(Chain* chain, int threads);

  struct MatMul {
    OnednnView a, b, c;              // [m,k] x [k,n] -> [m,n]
    std::optional<OnednnView> bias;  // [1,n]
    bool accumulate = false;         // c += a b
    Activation activation = Activation::kNone;
  };
  absl::StatusOr<OnednnCall> MakeMatMul(const MatMul& args);

  // y = alpha x
  absl::StatusOr<OnednnCall> MakeScale(float alpha, OnednnView x, OnednnView y);
  absl::StatusOr<OnednnCall> MakeActivation(Activation activation, OnednnView x,
                                            OnednnView y);
  // `saved` is the activation's result or, where the gradient reads that, its
  // operand.
  absl::StatusOr<OnednnCall> MakeActivationGrad(Activation activation,
                                                OnednnView saved, OnednnView dy,
                                                OnednnView dx);
  // y = alpha (a op b), or y += alpha (a op b); b may be [1,cols], [1,1].
  absl::StatusOr<OnednnCall> MakeBinary(OnednnBinary kind, OnednnView a,
                                        OnednnView b, OnednnView y, float alpha,
                                        bool accumulate);
  // y[1,cols] = sum over rows of x.
  absl::StatusOr<OnednnCall> MakeReduceRows(OnednnView x, OnednnView y);
  absl::StatusOr<OnednnCall> MakeSoftmax(OnednnView x, OnednnView y);
  absl::StatusOr<OnednnCall> MakeSoftmaxGrad(OnednnView y, OnednnView dy,
                                             OnednnView dx);
  // Converts to y's dtype.
  absl::StatusOr<OnednnCall> MakeReorder(OnednnView x, OnednnView y);

 private:
  struct Impl;  // what needs dnnl.hpp
  explicit Onednn(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_ONEDNN_H_
