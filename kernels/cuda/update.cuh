// SPDX-License-Identifier: Apache-2.0
// Updates of parameters, elementwise: each array is read and written once, and
// each output may be its input. A kernel for each rule of kernels/update.h, all
// with the launcher Update.
#ifndef ONESTEP_KERNELS_CUDA_UPDATE_CUH_
#define ONESTEP_KERNELS_CUDA_UPDATE_CUH_

#include "kernels/cuda/common.cuh"

namespace onestep::cuda {
namespace rules {

using V = float;
using S = float;
ONESTEP_DEVICE V MulAdd(V a, V b, V c) { return dev::Fma(a, b, c); }
ONESTEP_DEVICE V NegMulAdd(V a, V b, V c) { return dev::Fma(-a, b, c); }
ONESTEP_DEVICE V Mul(V a, V b) { return a * b; }
ONESTEP_DEVICE V Add(V a, V b) { return a + b; }
ONESTEP_DEVICE V Sub(V a, V b) { return a - b; }
ONESTEP_DEVICE V Div(V a, V b) { return a / b; }
ONESTEP_DEVICE V Sqrt(V a) { return dev::Sqrt(a); }
#define ONESTEP_RULE static ONESTEP_DEVICE
#include "kernels/update_rules.inc"
#undef ONESTEP_RULE

}  // namespace rules

// Of UpdateParams. Without padding: where a struct has arrays, g++ 12's
// __builtin_clear_padding (in Launch::SetArgs) also clears what is none.
struct UpdateArgs {
  In w, dw, state[kMaxUpdateStates], lr, step;
  In hyper_at[kMaxUpdateHypers];  // null: the value
  Out w_out, state_out[kMaxUpdateStates];
  float hyper[kMaxUpdateHypers];
  float log[kMaxUpdateHypers];  // of the hyper-parameters with a correction
  int64_t n, flag;
};

// 1 - exp(x) for x <= 0: near 0 by its series, where a difference would lose
// the digits.
ONESTEP_DEVICE float OneMinusExp(float x) {
  if (x < -0.5f) return 1 - dev::Exp(x);
  float sum = 1.0f;  // of x^i / (i + 1)!, up to x^8
  ONESTEP_UNROLL
  for (int i = 9; i >= 2; --i) sum = dev::Fma(sum, x * (1.0f / i), 1.0f);
  return -x * sum;
}

// What Rule multiplies by in the step, for this block's model.
template <class Rule>
ONESTEP_DEVICE void Prepare(const UpdateArgs& args,
                            float (&c)[Rule::kCoefficients]) {
  static_assert(Rule::kHypers <= kMaxUpdateHypers);
  static_assert(Rule::kStates <= kMaxUpdateStates);
  float hyper[Rule::kHypers], corrections[kMaxUpdateHypers];
  ONESTEP_UNROLL
  for (int i = 0; i < Rule::kHypers; ++i) {
    const In& at = args.hyper_at[i];
    hyper[i] = at.first != nullptr ? *OfModel(at) : args.hyper[i];
  }
  ONESTEP_UNROLL
  for (int i = 0; i < Rule::kCorrections; ++i) {
    corrections[i] = OneMinusExp(*OfModel(args.step) * args.log[i]);
  }
  Rule::Prepare(*OfModel(args.lr), hyper, corrections, args.flag != 0, c);
}

template <class Rule, int kWidth>
ONESTEP_DEVICE void RunUpdate(const UpdateArgs& args) {
  Begin();
  const int64_t i = FirstElement<kWidth>();
  if (i >= args.n) return;
  auto w = Load<kWidth>(OfModel(args.w) + i);
  const auto dw = Load<kWidth>(OfModel(args.dw) + i);
  dev::Vec<float, kWidth> state[kMaxUpdateStates];
  ONESTEP_UNROLL
  for (int s = 0; s < Rule::kStates; ++s) {
    state[s] = Load<kWidth>(OfModel(args.state[s]) + i);
  }
  float c[Rule::kCoefficients];
  Prepare<Rule>(args, c);
  ONESTEP_UNROLL
  for (int u = 0; u < kWidth; ++u) {
    float own[kMaxUpdateStates];
    ONESTEP_UNROLL
    for (int s = 0; s < Rule::kStates; ++s) own[s] = state[s].v[u];
    w.v[u] = Rule::Apply(w.v[u], dw.v[u], own, c, args.flag != 0);
    ONESTEP_UNROLL
    for (int s = 0; s < Rule::kStates; ++s) state[s].v[u] = own[s];
  }
  Store(w, OfModel(args.w_out) + i);
  ONESTEP_UNROLL
  for (int s = 0; s < Rule::kStates; ++s) {
    Store(state[s], OfModel(args.state_out[s]) + i);
  }
}

#define RULE(Rule)                        \
  template <int kWidth>                   \
  ONESTEP_KERNEL(kThreads)                \
  void Rule##Update(UpdateArgs args) {    \
    RunUpdate<rules::Rule, kWidth>(args); \
  }
ONESTEP_UPDATE_RULES(RULE)
#undef RULE

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_UPDATE_CUH_
