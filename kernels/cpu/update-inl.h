// SPDX-License-Identifier: Apache-2.0
// The update rules over vectors, compiled once per target: one definition for
// one model and for many, which are to have the same bits.

// Per-target include guard, see hwy/foreach_target.h.
#if defined(ONESTEP_KERNELS_CPU_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONESTEP_KERNELS_CPU_UPDATE_INL_H_
#undef ONESTEP_KERNELS_CPU_UPDATE_INL_H_
#else
#define ONESTEP_KERNELS_CPU_UPDATE_INL_H_
#endif

#include <cmath>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/update.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {
namespace rules {

using hn::Add, hn::Div, hn::Mul, hn::MulAdd, hn::NegMulAdd, hn::Sqrt, hn::Sub;
using S = double;
#define ONESTEP_RULE static HWY_INLINE
#include "kernels/update_rules.inc"
#undef ONESTEP_RULE

}  // namespace rules

// Calls f with the rule's struct.
template <class F>
HWY_INLINE void WithRule(UpdateRule rule, F f) {
  switch (rule) {
#define RULE(Rule)          \
  case UpdateRule::k##Rule: \
    return f(rules::Rule());
    ONESTEP_UPDATE_RULES(RULE)
#undef RULE
  }
}

// What Rule multiplies by in the step, for any model.
template <class Rule>
class Coefficients {
 public:
  explicit HWY_INLINE Coefficients(const UpdateHypers& hypers)
      : hypers_(hypers) {
    static_assert(Rule::kHypers <= kMaxUpdateHypers);
    static_assert(Rule::kStates <= kMaxUpdateStates);
    for (int i = 0; i < Rule::kCorrections; ++i) {
      const double base = hypers.hyper[i].value;
      corrections_[i] = 1 - std::pow(base, double{*hypers.step});
    }
  }

  HWY_INLINE void Of(int64_t model, float (&c)[Rule::kCoefficients]) const {
    double hyper[Rule::kHypers], all[Rule::kCoefficients];
    for (int i = 0; i < Rule::kHypers; ++i) {
      const Hyper& from = hypers_.hyper[i];
      hyper[i] = from.at == nullptr ? from.value : from.at[model];
    }
    Rule::Prepare(hypers_.lr[model], hyper, corrections_, hypers_.flag, all);
    for (int i = 0; i < Rule::kCoefficients; ++i) {
      c[i] = static_cast<float>(all[i]);
    }
  }

 private:
  const UpdateHypers hypers_;
  double corrections_[kMaxUpdateHypers] = {};
};

// The vector at element i.
template <class Rule, class Lanes>
HWY_INLINE void UpdateVector(const UpdateArrays& arrays, int64_t i,
                             const V (&c)[Rule::kCoefficients], bool flag,
                             Lanes lanes) {
  V state[kMaxUpdateStates];
  for (int s = 0; s < Rule::kStates; ++s) {
    state[s] = lanes.Load(arrays.state[s] + i);
  }
  const V w = Rule::Apply(lanes.Load(arrays.w + i), lanes.Load(arrays.dw + i),
                          state, c, flag);
  lanes.Store(w, arrays.w_out + i);
  for (int s = 0; s < Rule::kStates; ++s) {
    lanes.Store(state[s], arrays.state_out[s] + i);
  }
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESTEP_KERNELS_CPU_UPDATE_INL_H_
