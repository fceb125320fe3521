// SPDX-License-Identifier: Apache-2.0
// SIMD helpers of the CPU kernels, compiled once per target: loads and stores
// of full and partial vectors that never access memory beyond the requested
// values, a loop over them, exp, log1p, sigmoid, and transposed loads and
// stores.

// Per-target include guard, see hwy/foreach_target.h.
#if defined(ONESTEP_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONESTEP_KERNELS_CPU_SIMD_INL_H_
#undef ONESTEP_KERNELS_CPU_SIMD_INL_H_
#else
#define ONESTEP_KERNELS_CPU_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

constexpr int64_t kLanes = hn::MaxLanes(D());

// Accesses to a full vector.
struct Full {
  HWY_INLINE V Load(const float* p) const { return hn::LoadU(D(), p); }
  HWY_INLINE void Store(V v, float* p) const { hn::StoreU(v, D(), p); }
  // v in the lanes of this access, `other` in the rest.
  HWY_INLINE V Or(V v, V /*other*/) const { return v; }
};

// Accesses to the first `count` lanes, 1 <= count <= kLanes; Load sets the
// other lanes to zero.
struct Part {
  explicit HWY_INLINE Part(int64_t n)
      : count(static_cast<size_t>(n)), mask(hn::FirstN(D(), count)) {}

  HWY_INLINE V Load(const float* p) const {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    return hn::MaskedLoad(mask, D(), p);
#else  // Highway's masked load may fault on masked lanes.
    HWY_ALIGN float lanes[kLanes] = {};
    for (size_t i = 0; i < count; ++i) lanes[i] = p[i];
    return hn::Load(D(), lanes);
#endif
  }
  HWY_INLINE void Store(V v, float* p) const {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    hn::BlendedStore(v, mask, D(), p);
#else  // Highway's blended store may write to the masked lanes.
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, D(), lanes);
    for (size_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
  }
  HWY_INLINE V Or(V v, V other) const { return hn::IfThenElse(mask, v, other); }

  size_t count;
  M mask;
};

// Loads kLanes bytes and converts them to floats.
HWY_INLINE V LoadU8(const uint8_t* p) {
  const hn::Rebind<uint8_t, D> du8;
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(D(), hn::PromoteTo(di, hn::LoadU(du8, p)));
}

// Unlike Max, this propagates NaN on every target.
HWY_INLINE V Relu(V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(D())), x);
}

// exp(x) for x <= 0. The result is 0 where it would be denormal, and NaN for
// NaN. The range reduction and the polynomial are those of Highway's Exp, which
// takes twice as long because it also covers x > 0 and denormal results.
HWY_INLINE V ExpOfNonPositive(V x) {
  const D d;
  const hn::RebindToSigned<D> di;
  // x = n ln 2 + r. The sum with 1.5 2^23 rounds to the integer n and leaves
  // it in the lowest bits.
  const V magic = hn::Set(d, 12582912.0f);
  const V sum = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(sum, magic);
  V r = hn::MulAdd(n, hn::Set(d, -0.693145752f), x);
  r = hn::MulAdd(n, hn::Set(d, -1.42860677e-6f), r);
  const V r2 = hn::Mul(r, r);
  const V p01 = hn::MulAdd(r, hn::Set(d, 0.166666672f), hn::Set(d, 0.5f));
  const V p23 =
      hn::MulAdd(r, hn::Set(d, 0.00833336078f), hn::Set(d, 0.0416664854f));
  const V p45 =
      hn::MulAdd(r, hn::Set(d, 0.000198527618f), hn::Set(d, 0.00139304355f));
  const V p = hn::MulAdd(hn::MulAdd(p45, r2, p23), r2, p01);
  const V expm1 = hn::MulAdd(p, r2, r);
  const V power =
      hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, sum)),
                             hn::BitCast(di, hn::Set(d, 1.0f))));  // 2^n
  const auto is_zero = hn::Lt(x, hn::Set(d, -87.33f));
  return hn::IfThenZeroElse(is_zero, hn::MulAdd(expm1, power, power));
}

// log(1 + e) for 0 <= e <= 1: e times a polynomial fitted to log(1 + e) / e at
// Chebyshev nodes. The error is at most 1e-7.
HWY_INLINE V Log1pOfUnit(V e) {
  constexpr float kTerms[9] = {0.0052534578f, -0.0295885074f, 0.078361668f,
                               -0.136747697f, 0.191114311f,   -0.248443699f,
                               0.333192713f,  -0.499995015f,  0.999999971f};
  V p = hn::Set(D(), kTerms[0]);
  HWY_UNROLL(8)
  for (int i = 1; i < 9; ++i) {
    p = hn::MulAdd(p, e, hn::Set(D(), kTerms[i]));
  }
  return hn::Mul(p, e);
}

HWY_INLINE V Sigmoid(V x) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  // exp of -|x| does not overflow and keeps the digits of both tails.
  const V e = ExpOfNonPositive(hn::Neg(hn::Abs(x)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

// Calls f(i, lanes) for each vector of n values, which starts at value i: lanes
// is Full for all but the last one, which may be a Part.
template <class F>
HWY_INLINE void ForVectors(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, Full());
  if (i < n) f(i, Part(n - i));
}

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE void LoadColumns(const float* x, int64_t /*ldx*/, V (&v)[4]) {
  for (int i = 0; i < 4; ++i) v[i] = hn::Load(D(), x + i);
}
HWY_INLINE void StoreColumns(V (&v)[4], float* y, int64_t /*ldy*/) {
  for (int i = 0; i < 4; ++i) hn::Store(v[i], D(), y + i);
}

#else

// Loads the 128-bit blocks at x, x + 4 ld, x + 8 ld, ... into one vector.
template <class DX>
HWY_INLINE hn::Vec<DX> LoadBlocks(DX d, const float* x, int64_t ld) {
  if constexpr (hn::MaxLanes(DX()) == 4) {
    return hn::LoadU(d, x);
  } else {
    const hn::Half<DX> half;
    constexpr int64_t kRows = hn::MaxLanes(half);
    return hn::Combine(d, LoadBlocks(half, x + kRows * ld, ld),
                       LoadBlocks(half, x, ld));
  }
}

template <class DX>
HWY_INLINE void StoreBlocks(DX d, hn::Vec<DX> v, float* y, int64_t ld) {
  if constexpr (hn::MaxLanes(DX()) == 4) {
    hn::StoreU(v, d, y);
  } else {
    const hn::Half<DX> half;
    constexpr int64_t kRows = hn::MaxLanes(half);
    StoreBlocks(half, hn::LowerHalf(half, v), y, ld);
    StoreBlocks(half, hn::UpperHalf(half, v), y + kRows * ld, ld);
  }
}

// Transposes the 4x4 matrix of each 128-bit block of the four vectors.
HWY_INLINE void TransposeBlocks(V (&v)[4]) {
  const D d;
  const hn::RepartitionToWide<D> dd;
  const auto lo01 = hn::BitCast(dd, hn::InterleaveLower(d, v[0], v[1]));
  const auto lo23 = hn::BitCast(dd, hn::InterleaveLower(d, v[2], v[3]));
  const auto hi01 = hn::BitCast(dd, hn::InterleaveUpper(d, v[0], v[1]));
  const auto hi23 = hn::BitCast(dd, hn::InterleaveUpper(d, v[2], v[3]));
  v[0] = hn::BitCast(d, hn::InterleaveLower(dd, lo01, lo23));
  v[1] = hn::BitCast(d, hn::InterleaveUpper(dd, lo01, lo23));
  v[2] = hn::BitCast(d, hn::InterleaveLower(dd, hi01, hi23));
  v[3] = hn::BitCast(d, hn::InterleaveUpper(dd, hi01, hi23));
}

// v[j] = column j of x[kLanes,4] with row stride ldx.
HWY_INLINE void LoadColumns(const float* x, int64_t ldx, V (&v)[4]) {
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) v[i] = LoadBlocks(D(), x + i * ldx, ldx);
  TransposeBlocks(v);
}

// The inverse of LoadColumns; overwrites v.
HWY_INLINE void StoreColumns(V (&v)[4], float* y, int64_t ldy) {
  TransposeBlocks(v);
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) StoreBlocks(D(), v[i], y + i * ldy, ldy);
}

#endif  // HWY_TARGET

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESTEP_KERNELS_CPU_SIMD_INL_H_
