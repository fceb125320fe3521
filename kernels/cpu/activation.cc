// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/activation.h"

#include <type_traits>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

struct Normal {
  V cdf, pdf;
};

// The standard normal distribution at x.
HWY_INLINE Normal NormalAt(V x) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  const V bell = ExpOfNonPositive(hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  // Abramowitz and Stegun 7.1.26: erfc(z) = poly(t) exp(-z^2) with
  // t = 1 / (1 + 0.3275911 z), |error| <= 1.5e-7; here z = |x| / sqrt(2).
  const V t = hn::Div(
      one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.3275911f * 0.70710678f), one));
  V poly = hn::Set(d, 1.061405429f);
  poly = hn::MulAdd(poly, t, hn::Set(d, -1.453152027f));
  poly = hn::MulAdd(poly, t, hn::Set(d, 1.421413741f));
  poly = hn::MulAdd(poly, t, hn::Set(d, -0.284496736f));
  poly = hn::MulAdd(poly, t, hn::Set(d, 0.254829592f));
  const V tail = hn::Mul(hn::Mul(hn::Mul(poly, t), hn::Set(d, 0.5f)), bell);
  // The left tail as it is: 1 - (1 - tail) would lose its digits.
  const V cdf =
      hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  return {cdf, hn::Mul(bell, hn::Set(d, 0.39894228f))};  // 1 / sqrt(2 pi)
}

HWY_INLINE V Tanh(V x) {
  const D d;
  // tanh(10) rounds to 1; the bounds keep Expm1's int32 in range.
  const V bounded = hn::Min(hn::Max(x, hn::Set(d, -10.0f)), hn::Set(d, 10.0f));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, bounded));
}

// Each activation specialises both: y = f(x), and dx of the saved value, y or
// x, and dy.
template <Activation kAct>
HWY_INLINE V Forward(V x);
template <Activation kAct>
HWY_INLINE V Backward(V saved, V dy);

template <>
HWY_INLINE V Forward<Activation::kNone>(V x) {
  return x;
}
template <>
HWY_INLINE V Backward<Activation::kNone>(V /*y*/, V dy) {
  return dy;
}

template <>
HWY_INLINE V Forward<Activation::kRelu>(V x) {
  return Relu(x);
}
template <>
HWY_INLINE V Backward<Activation::kRelu>(V y, V dy) {
  return hn::IfThenElseZero(hn::Gt(y, hn::Zero(D())), dy);
}

template <>
HWY_INLINE V Forward<Activation::kTanh>(V x) {
  return Tanh(x);
}
template <>
HWY_INLINE V Backward<Activation::kTanh>(V y, V dy) {
  return hn::Mul(dy, hn::NegMulAdd(y, y, hn::Set(D(), 1.0f)));
}

template <>
HWY_INLINE V Forward<Activation::kSigmoid>(V x) {
  return Sigmoid(x);
}
template <>
HWY_INLINE V Backward<Activation::kSigmoid>(V y, V dy) {
  return hn::Mul(dy, hn::Mul(y, hn::Sub(hn::Set(D(), 1.0f), y)));
}

template <>
HWY_INLINE V Forward<Activation::kGelu>(V x) {
  return hn::Mul(x, NormalAt(x).cdf);
}
template <>
HWY_INLINE V Backward<Activation::kGelu>(V x, V dy) {
  const Normal normal = NormalAt(x);
  return hn::Mul(dy, hn::MulAdd(x, normal.pdf, normal.cdf));
}

// Calls f with the activation as a compile-time constant.
template <class F>
HWY_INLINE void WithAct(Activation act, F f) {
  switch (act) {
    case Activation::kNone:
      return f(std::integral_constant<Activation, Activation::kNone>());
#define ACTIVATION(Kind, ...) \
  case Activation::k##Kind:   \
    return f(std::integral_constant<Activation, Activation::k##Kind>());
#include "kernels/activations.def"
#undef ACTIVATION
  }
}

void ActivationForward(Activation act, const float* x, float* y, int64_t n) {
  WithAct(act, [=](auto kind) HWY_ATTR {
    ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
      lanes.Store(Forward<kind.value>(lanes.Load(x + i)), y + i);
    });
  });
}

void ActivationBackward(Activation act, const float* y, const float* dy,
                        float* dx, int64_t n) {
  WithAct(act, [=](auto kind) HWY_ATTR {
    ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
      const V grad =
          Backward<kind.value>(lanes.Load(y + i), lanes.Load(dy + i));
      lanes.Store(grad, dx + i);
    });
  });
}

struct GradBiasArgs {
  const float *y, *dy;
  float *dx, *db;
  bool accumulate;
  int64_t rows, cols;
};

// kVecs vectors of columns from `col`, their sums in registers.
template <Activation kAct, int kVecs, class Lanes>
HWY_INLINE void GradBiasColumns(const GradBiasArgs& args, int64_t col,
                                Lanes lanes) {
  V sum[kVecs];
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs; ++v) sum[v] = hn::Zero(D());
  for (int64_t r = 0; r < args.rows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs; ++v) {
      const int64_t i = r * args.cols + col + v * kLanes;
      const V grad =
          Backward<kAct>(lanes.Load(args.y + i), lanes.Load(args.dy + i));
      lanes.Store(grad, args.dx + i);
      sum[v] = hn::Add(sum[v], grad);
    }
  }
  if (args.db == nullptr) return;
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs; ++v) {
    float* db = args.db + col + v * kLanes;
    if (args.accumulate) sum[v] = hn::Add(lanes.Load(db), sum[v]);
    lanes.Store(sum[v], db);
  }
}

void ActivationGradBias(Activation act, const float* y, const float* dy,
                        float* dx, float* db, bool accumulate, int64_t rows,
                        int64_t cols, int64_t col_begin, int64_t col_end) {
  const GradBiasArgs args = {y, dy, dx, db, accumulate, rows, cols};
  WithAct(act, [&](auto kind) HWY_ATTR {
    constexpr Activation kAct = kind.value;
    int64_t c = col_begin;
    for (; c + 4 * kLanes <= col_end; c += 4 * kLanes) {
      GradBiasColumns<kAct, 4>(args, c, Full());
    }
    for (; c + kLanes <= col_end; c += kLanes) {
      GradBiasColumns<kAct, 1>(args, c, Full());
    }
    if (c < col_end) GradBiasColumns<kAct, 1>(args, c, Part(col_end - c));
  });
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(ActivationForward);
HWY_EXPORT(ActivationBackward);
HWY_EXPORT(ActivationGradBias);

void ActivationForward(Activation act, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ActivationForward)(act, x, y, n);
}

void ActivationBackward(Activation act, const float* y, const float* dy,
                        float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ActivationBackward)(act, y, dy, dx, n);
}

void ActivationGradBias(Activation act, const float* y, const float* dy,
                        float* dx, float* db, bool accumulate, int64_t rows,
                        int64_t cols, int64_t col_begin, int64_t col_end) {
  HWY_DYNAMIC_DISPATCH(ActivationGradBias)
  (act, y, dy, dx, db, accumulate, rows, cols, col_begin, col_end);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
