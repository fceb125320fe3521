// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/loss.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

HWY_INLINE float SumLanes(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }
HWY_INLINE float MaxLanes(V v) { return hn::GetLane(hn::MaxOfLanes(D(), v)); }

// What one visit of a row's logits tells.
struct RowMax {
  float max;    // with a logit that is NaN: of some of the others
  bool finite;  // every logit is
};

HWY_INLINE RowMax MaxOfRow(const float* z, int64_t cols) {
  const D d;
  const V low = hn::Set(d, -kInf);
  V max = low;
  // 0 times a logit is 0, or NaN when the logit is not finite.
  V taint = hn::Zero(d);
  ForVectors(cols, [&](int64_t i, auto lanes) HWY_ATTR {
    const V x = lanes.Load(z + i);
    max = hn::Max(max, lanes.Or(x, low));
    taint = hn::MulAdd(x, hn::Zero(d), taint);
  });
  return {MaxLanes(max), hn::AllTrue(d, hn::Eq(taint, hn::Zero(d)))};
}

// y = exp(z - max) unless y is null; returns the sum.
HWY_INLINE float ExpOfRow(const float* z, float max, float* y, int64_t cols) {
  const D d;
  const V shift = hn::Set(d, max);
  V sum = hn::Zero(d);
  ForVectors(cols, [&](int64_t i, auto lanes) HWY_ATTR {
    const V e = ExpOfNonPositive(hn::Sub(lanes.Load(z + i), shift));
    if (y != nullptr) lanes.Store(e, y + i);
    sum = hn::Add(sum, lanes.Or(e, hn::Zero(d)));
  });
  return SumLanes(sum);
}

HWY_INLINE void ScaleRow(float alpha, float* y, int64_t cols) {
  const V scale = hn::Set(D(), alpha);
  ForVectors(cols, [=](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(hn::Mul(scale, lanes.Load(y + i)), y + i);
  });
}

// Whether the first z equal to `max` is z[label].
HWY_INLINE bool FirstIsAt(const float* z, float max, int64_t label) {
  if (z[label] != max) return false;
  const D d;
  const V best = hn::Set(d, max);
  bool earlier = false;
  ForVectors(label, [&](int64_t i, auto lanes) HWY_ATTR {
    const V x = lanes.Or(lanes.Load(z + i), hn::Set(d, -kInf));
    earlier = earlier || !hn::AllFalse(d, hn::Eq(x, best));
  });
  return !earlier;
}

HWY_INLINE float Correct(const float* z, RowMax row, int64_t label) {
  return row.finite && FirstIsAt(z, row.max, label) ? 1.0f : 0.0f;
}

// The large terms first, so that equal ones cancel without a rounding.
HWY_INLINE float LossOfRow(const float* z, RowMax row, float sum,
                           int64_t label) {
  if (!row.finite) return kNan;
  return (row.max - z[label]) + std::log(sum);
}

void Softmax(const float* x, float* y, int64_t cols, int64_t begin,
             int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* z = x + r * cols;
    const float sum = ExpOfRow(z, MaxOfRow(z, cols).max, y + r * cols, cols);
    ScaleRow(1 / sum, y + r * cols, cols);
  }
}

void SoftmaxGrad(const float* y, const float* dy, float* dx, int64_t cols,
                 int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float *yr = y + r * cols, *dyr = dy + r * cols;
    float* dxr = dx + r * cols;
    V sum = hn::Zero(D());
    ForVectors(cols, [&](int64_t i, auto lanes) HWY_ATTR {
      sum = hn::MulAdd(lanes.Load(dyr + i), lanes.Load(yr + i), sum);
    });
    const V dot = hn::SumOfLanes(D(), sum);
    ForVectors(cols, [&](int64_t i, auto lanes) HWY_ATTR {
      const V centred = hn::Sub(lanes.Load(dyr + i), dot);
      lanes.Store(hn::Mul(centred, lanes.Load(yr + i)), dxr + i);
    });
  }
}

void NllRows(const float* logits, const int32_t* labels, float* row_loss,
             int64_t cols, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* z = logits + r * cols;
    const RowMax row = MaxOfRow(z, cols);
    const float sum = ExpOfRow(z, row.max, nullptr, cols);
    row_loss[r] = LossOfRow(z, row, sum, labels[r]);
  }
}

void MinusOneHot(const float* p, const int32_t* labels, float* y, int64_t cols,
                 int64_t begin, int64_t end) {
  if (p != y) {
    const int64_t first = begin * cols;
    ForVectors((end - begin) * cols, [=](int64_t i, auto lanes) HWY_ATTR {
      lanes.Store(lanes.Load(p + first + i), y + first + i);
    });
  }
  for (int64_t r = begin; r < end; ++r) y[r * cols + labels[r]] -= 1.0f;
}

void MseRows(const float* y, const float* t, float* row_loss, int64_t cols,
             int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    V sum = hn::Zero(D());
    ForVectors(cols, [&](int64_t i, auto lanes) HWY_ATTR {
      const V diff =
          hn::Sub(lanes.Load(y + r * cols + i), lanes.Load(t + r * cols + i));
      sum = hn::MulAdd(diff, diff, sum);
    });
    row_loss[r] = SumLanes(sum);
  }
}

void MseGrad(float alpha, const float* y, const float* t, float* dy,
             int64_t n) {
  const V scale = hn::Set(D(), alpha);
  ForVectors(n, [=](int64_t i, auto lanes) HWY_ATTR {
    const V diff = hn::Sub(lanes.Load(y + i), lanes.Load(t + i));
    lanes.Store(hn::Mul(scale, diff), dy + i);
  });
}

void CorrectRows(const float* logits, const int32_t* labels, float* row_correct,
                 int64_t cols, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* z = logits + r * cols;
    row_correct[r] = Correct(z, MaxOfRow(z, cols), labels[r]);
  }
}

void SoftmaxXentGradRows(const float* logits, const int32_t* labels,
                         const int32_t* indices, float alpha, float* dlogits,
                         float* row_loss, float* row_correct, int64_t cols,
                         int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* z = logits + r * cols;
    float* dz = dlogits + r * cols;
    const int64_t label = labels[indices != nullptr ? indices[r] : r];
    const RowMax row = MaxOfRow(z, cols);
    row_correct[r] = Correct(z, row, label);
    const float z_label = z[label];  // dz may be z
    const float sum = ExpOfRow(z, row.max, dz, cols);
    row_loss[r] = LossOfRow(&z_label, row, sum, 0);
    ScaleRow(alpha / sum, dz, cols);
    dz[label] -= alpha;
  }
}

void MseGradRows(const float* logits, const int32_t* labels,
                 const int32_t* indices, float alpha, float* dlogits,
                 float* row_loss, float* row_correct, int64_t cols,
                 int64_t begin, int64_t end) {
  const D d;
  for (int64_t r = begin; r < end; ++r) {
    const float* z = logits + r * cols;
    float* dz = dlogits + r * cols;
    const int64_t label = labels[indices != nullptr ? indices[r] : r];
    row_correct[r] = Correct(z, MaxOfRow(z, cols), label);
    const V scale = hn::Set(d, alpha), one = hn::Set(d, 1.0f);
    // As floats: exact up to 2^24 classes.
    const V at = hn::Set(d, static_cast<float>(label));
    V sum = hn::Zero(d);
    ForVectors(cols, [&](int64_t i, auto lanes) HWY_ATTR {
      const auto is_label = hn::Eq(hn::Iota(d, static_cast<float>(i)), at);
      const V diff =
          hn::Sub(lanes.Load(z + i), hn::IfThenElseZero(is_label, one));
      sum = hn::MulAdd(diff, diff, sum);
      lanes.Store(hn::Mul(scale, diff), dz + i);
    });
    row_loss[r] = SumLanes(sum);
  }
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(Softmax);
HWY_EXPORT(SoftmaxGrad);
HWY_EXPORT(NllRows);
HWY_EXPORT(MinusOneHot);
HWY_EXPORT(MseRows);
HWY_EXPORT(MseGrad);
HWY_EXPORT(CorrectRows);
HWY_EXPORT(SoftmaxXentGradRows);
HWY_EXPORT(MseGradRows);

void Softmax(const float* x, float* y, int64_t cols, int64_t begin,
             int64_t end) {
  HWY_DYNAMIC_DISPATCH(Softmax)(x, y, cols, begin, end);
}

void SoftmaxGrad(const float* y, const float* dy, float* dx, int64_t cols,
                 int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGrad)(y, dy, dx, cols, begin, end);
}

void NllRows(const float* logits, const int32_t* labels, float* row_loss,
             int64_t cols, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(NllRows)(logits, labels, row_loss, cols, begin, end);
}

void MinusOneHot(const float* p, const int32_t* labels, float* y, int64_t cols,
                 int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(MinusOneHot)(p, labels, y, cols, begin, end);
}

void MseRows(const float* y, const float* t, float* row_loss, int64_t cols,
             int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(MseRows)(y, t, row_loss, cols, begin, end);
}

void MseGrad(float alpha, const float* y, const float* t, float* dy,
             int64_t n) {
  HWY_DYNAMIC_DISPATCH(MseGrad)(alpha, y, t, dy, n);
}

void CorrectRows(const float* logits, const int32_t* labels, float* row_correct,
                 int64_t cols, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(CorrectRows)
  (logits, labels, row_correct, cols, begin, end);
}

void SoftmaxXentGradRows(const float* logits, const int32_t* labels,
                         const int32_t* indices, float alpha, float* dlogits,
                         float* row_loss, float* row_correct, int64_t cols,
                         int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(SoftmaxXentGradRows)
  (logits, labels, indices, alpha, dlogits, row_loss, row_correct, cols, begin,
   end);
}

void MseGradRows(const float* logits, const int32_t* labels,
                 const int32_t* indices, float alpha, float* dlogits,
                 float* row_loss, float* row_correct, int64_t cols,
                 int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(MseGradRows)
  (logits, labels, indices, alpha, dlogits, row_loss, row_correct, cols, begin,
   end);
}

float SumRows(const float* x, float alpha, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  return static_cast<float>(static_cast<double>(alpha) * sum);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
