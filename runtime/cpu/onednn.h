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

enum class OnednnEltwise : uint8_t {
  kLinear,
  kRelu,
  kTanh,
  kLogistic,
  kGelu  // with erf
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
// implementation but its reference loop (which would be a straw man), and
// Internal with oneDNN's message when it fails.
class Onednn {
 public:
  // `threads`: of the OpenMP team that primitives are made for and run on.
  // REQUIRES: chain outlives this; this outlives the chain's last run.
  static absl::StatusOr<std::shared_ptr<Onednn>> Create(Chain* chain,
                                                        int threads);
  virtual ~Onednn() = default;

  struct MatMul {
    OnednnView a, b, c;              // [m,k] x [k,n] -> [m,n]
    std::optional<OnednnView> bias;  // [1,n]
    bool accumulate = false;         // c += a b
    std::optional<OnednnEltwise> activation;
  };
  virtual absl::StatusOr<OnednnCall> MakeMatMul(const MatMul& args) = 0;

  // y = alpha x for kLinear, else the function of x.
  virtual absl::StatusOr<OnednnCall> MakeEltwise(OnednnEltwise kind,
                                                 float alpha, OnednnView x,
                                                 OnednnView y) = 0;
  // `y` is the forward result, for kGelu the forward operand.
  virtual absl::StatusOr<OnednnCall> MakeEltwiseGrad(OnednnEltwise kind,
                                                     OnednnView y,
                                                     OnednnView dy,
                                                     OnednnView dx) = 0;
  // y = alpha (a op b), or y += alpha (a op b); b may be [1,cols], [1,1].
  virtual absl::StatusOr<OnednnCall> MakeBinary(OnednnBinary kind, OnednnView a,
                                                OnednnView b, OnednnView y,
                                                float alpha,
                                                bool accumulate) = 0;
  // y[1,cols] = sum over rows of x.
  virtual absl::StatusOr<OnednnCall> MakeReduceRows(OnednnView x,
                                                    OnednnView y) = 0;
  virtual absl::StatusOr<OnednnCall> MakeSoftmax(OnednnView x,
                                                 OnednnView y) = 0;
  virtual absl::StatusOr<OnednnCall> MakeSoftmaxGrad(OnednnView y,
                                                     OnednnView dy,
                                                     OnednnView dx) = 0;
  // Converts to y's dtype.
  virtual absl::StatusOr<OnednnCall> MakeReorder(OnednnView x,
                                                 OnednnView y) = 0;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_ONEDNN_H_
