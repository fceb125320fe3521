// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise.h"

#include <algorithm>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

void Scale(float alpha, const float* x, float* y, int64_t n) {
  const V scale = hn::Set(D(), alpha);
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(hn::Mul(scale, lanes.Load(x + i)), y + i);
  });
}

void Add(const float* a, const float* b, float* y, int64_t n) {
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(hn::Add(lanes.Load(a + i), lanes.Load(b + i)), y + i);
  });
}

void Mul(const float* a, const float* b, float* y, int64_t n) {
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(hn::Mul(lanes.Load(a + i), lanes.Load(b + i)), y + i);
  });
}

void CastU8(const uint8_t* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(LoadU8(x + i), D(), y + i);
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

void CastI32(const int32_t* x, float* y, int64_t n) {
  const hn::RebindToSigned<D> di;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::ConvertTo(D(), hn::LoadU(di, x + i)), D(), y + i);
  }
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

// Processes one vector of columns, four rows at a time. All four rows are
// loaded before the first is stored, because rows narrower than a vector share
// cache lines and a load that follows a masked store to its line stalls.
template <class Lanes>
HWY_INLINE void AddBiasColumn(const float* x, const float* b, float* y,
                              int64_t rows, int64_t cols, Lanes lanes) {
  const V bias = lanes.Load(b);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    V sum[4];
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      sum[i] = hn::Add(lanes.Load(x + (r + i) * cols), bias);
    }
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) lanes.Store(sum[i], y + (r + i) * cols);
  }
  for (; r < rows; ++r) {
    lanes.Store(hn::Add(lanes.Load(x + r * cols), bias), y + r * cols);
  }
}

void AddBias(const float* x, const float* b, float* y, int64_t rows,
             int64_t cols) {
  int64_t c = 0;
  for (; c + kLanes <= cols; c += kLanes) {
    AddBiasColumn(x + c, b + c, y + c, rows, cols, Full());
  }
  if (c == cols) return;
  AddBiasColumn(x + c, b + c, y + c, rows, cols, Part(cols - c));
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(Scale);
HWY_EXPORT(Add);
HWY_EXPORT(Mul);
HWY_EXPORT(CastU8);
HWY_EXPORT(CastI32);
HWY_EXPORT(AddBias);

void Scale(float alpha, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Scale)(alpha, x, y, n);
}

void Add(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Add)(a, b, y, n);
}

void Mul(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Mul)(a, b, y, n);
}

void CastU8(const uint8_t* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CastU8)(x, y, n);
}

void CastI32(const int32_t* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CastI32)(x, y, n);
}

void AddBias(const float* x, const float* b, float* y, int64_t rows,
             int64_t cols) {
  HWY_DYNAMIC_DISPATCH(AddBias)(x, b, y, rows, cols);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
