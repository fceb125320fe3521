// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/loss.h"

#include <algorithm>
#include <cstring>
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

// With at most this many columns, kLanes rows may be processed at once, one row
// per lane: a single row fills few vectors and needs horizontal sums. For so
// few columns both ways sum in the order of the columns, so that they are
// bit-identical.
constexpr int64_t kFewCols = 32;

// The result of one pass over a row's logits.
struct RowMax {
  float max;    // if a logit is NaN, the maximum of only some of the others
  bool finite;  // whether every logit is finite
};

HWY_INLINE RowMax MaxOfRow(const float* z, int64_t cols) {
  const D d;
  const V low = hn::Set(d, -kInf);
  V max = low;
  // 0 times a logit is 0 if the logit is finite, else NaN.
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
  HWY_ALIGN float few[kFewCols];
  V sum = hn::Zero(d);
  ForVectors(cols, [&](int64_t i, auto lanes) HWY_ATTR {
    const V e = ExpOfNonPositive(hn::Sub(lanes.Load(z + i), shift));
    if (y != nullptr) lanes.Store(e, y + i);
    // Whole vectors are stored, because a load that follows a masked store to
    // its line stalls.
    if (cols <= kFewCols) hn::Store(e, d, few + i);
    sum = hn::Add(sum, lanes.Or(e, hn::Zero(d)));
  });
  if (cols > kFewCols) return SumLanes(sum);
  float in_order = 0;
  for (int64_t i = 0; i < cols; ++i) in_order += few[i];
  return in_order;
}

HWY_INLINE void ScaleRow(float alpha, float* y, int64_t cols) {
  const V scale = hn::Set(D(), alpha);
  ForVectors(cols, [=](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(hn::Mul(scale, lanes.Load(y + i)), y + i);
  });
}

// Whether z[label] is the first element equal to `max`.
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

// Subtracts the large terms first, so that equal ones cancel exactly.
HWY_INLINE V LossOf(V max, V z_label, V sum) {
  return hn::Add(hn::Sub(max, z_label), hn::Log(D(), sum));
}

HWY_INLINE float LossOfRow(RowMax row, float z_label, float sum) {
  const D d;
  if (!row.finite) return kNan;
  return hn::GetLane(
      LossOf(hn::Set(d, row.max), hn::Set(d, z_label), hn::Set(d, sum)));
}

// The columns of up to kLanes rows, transposed so that each row is one lane.
// Fewer than kLanes rows, or fewer columns than a block, are copied to padded
// memory first.
class Columns {
 public:
  // Loads x[rows,cols], 1 <= rows <= kLanes; the other lanes become 0.
  HWY_INLINE Columns(const float* x, int64_t rows, int64_t cols)
      : rows_(rows), cols_(cols) {
    HWY_ALIGN float padded[kFewCols * kLanes];
    if (rows < kLanes) {
      std::memset(padded, 0, sizeof(float) * kLanes * cols);
      std::memcpy(padded, x, sizeof(float) * rows * cols);
      x = padded;
    }
    if (cols < 4) {
      for (int64_t c = 0; c < cols; ++c) {
        for (int64_t i = 0; i < kLanes; ++i) {
          values_[c * kLanes + i] = x[i * cols + c];
        }
      }
      return;
    }
    for (int64_t next = 0; next < cols; next += 4) {
      const int64_t c = std::min(next, cols - 4);  // the last block may overlap
      V v[4];
      LoadColumns(x + c, cols, v);
      HWY_UNROLL(4)
      for (int64_t i = 0; i < 4; ++i) Set(c + i, v[i]);
    }
  }

  HWY_INLINE void Store(float* y) const {
    if (rows_ == kLanes) return StoreAll(y);
    HWY_ALIGN float padded[kFewCols * kLanes];
    StoreAll(padded);
    std::memcpy(y, padded, sizeof(float) * rows_ * cols_);
  }

  HWY_INLINE V operator[](int64_t c) const {
    return hn::Load(D(), values_ + c * kLanes);
  }
  HWY_INLINE void Set(int64_t c, V v) {
    hn::Store(v, D(), values_ + c * kLanes);
  }
  HWY_INLINE int64_t size() const { return cols_; }

 private:
  HWY_INLINE void StoreAll(float* y) const {
    if (cols_ < 4) {
      for (int64_t c = 0; c < cols_; ++c) {
        for (int64_t i = 0; i < kLanes; ++i) {
          y[i * cols_ + c] = values_[c * kLanes + i];
        }
      }
      return;
    }
    for (int64_t next = 0; next < cols_; next += 4) {
      const int64_t c = std::min(next, cols_ - 4);
      V v[4];
      HWY_UNROLL(4)
      for (int64_t i = 0; i < 4; ++i) v[i] = (*this)[c + i];
      StoreColumns(v, y + c, cols_);
    }
  }

  const int64_t rows_, cols_;
  HWY_ALIGN float values_[kFewCols * kLanes];
};

// RowMax for each lane.
struct LaneMax {
  V max;
  M finite;
};

HWY_INLINE LaneMax MaxOf(const Columns& z) {
  const D d;
  V max = hn::Set(d, -kInf), taint = hn::Zero(d);
  for (int64_t c = 0; c < z.size(); ++c) {
    max = hn::Max(max, z[c]);
    // x - x is 0 if x is finite, else NaN.
    taint = hn::Or(taint, hn::Sub(z[c], z[c]));
  }
  return {max, hn::Eq(taint, hn::Zero(d))};
}

// Sets z = exp(z - max) and returns the sum of each lane.
HWY_INLINE V ExpOf(Columns& z, V max) {
  V sum = hn::Zero(D());
  for (int64_t c = 0; c < z.size(); ++c) {
    const V e = ExpOfNonPositive(hn::Sub(z[c], max));
    z.Set(c, e);
    sum = hn::Add(sum, e);
  }
  return sum;
}

// The value at each row's label, found in one pass over all columns.
struct AtLabel {
  V value;
  V correct;  // 1 where the value is the first of the largest, else 0
};

HWY_INLINE AtLabel Find(const Columns& z, LaneMax row, V label) {
  const D d;
  const V one = hn::Set(d, 1.0f), none = hn::Set(d, kInf);
  V value = hn::Zero(d), first = none, at = hn::Zero(d);
  for (int64_t c = 0; c < z.size(); ++c) {
    value = hn::IfThenElse(hn::Eq(at, label), z[c], value);
    first = hn::Min(first, hn::IfThenElse(hn::Eq(z[c], row.max), at, none));
    at = hn::Add(at, one);
  }
  const M correct = hn::And(row.finite, hn::Eq(first, label));
  return {value, hn::IfThenElseZero(correct, one)};
}

HWY_INLINE V LossOfLanes(LaneMax row, V z_label, V sum) {
  return hn::IfThenElse(row.finite, LossOf(row.max, z_label, sum),
                        hn::Set(D(), kNan));
}

// The labels of a block's rows as floats; the other lanes are 0.
HWY_INLINE V LabelsOf(const int32_t* labels, const int32_t* indices, int64_t r,
                      int64_t rows) {
  const hn::RebindToSigned<D> di;
  HWY_ALIGN int32_t lanes[kLanes] = {};
  for (int64_t i = 0; i < rows; ++i) {
    lanes[i] = labels[indices != nullptr ? indices[r + i] : r + i];
  }
  return hn::ConvertTo(D(), hn::Load(di, lanes));
}

HWY_INLINE void StoreRows(V v, float* y, int64_t rows) {
  if (rows == kLanes) {
    Full().Store(v, y);
  } else {
    Part(rows).Store(v, y);
  }
}

// Calls f(r, rows) for each block of rows that is processed with one row per
// lane; returns the first of the remaining rows, which are processed one by
// one.
template <class F>
HWY_INLINE int64_t ForBlocks(int64_t cols, int64_t begin, int64_t end, F f) {
  if (cols > kFewCols) return begin;
  // A partial block costs as much as a full one, so that fewer rows than
  // min_rows are faster one by one. Measured on Zen 5 with 4 to 32 columns.
  const int64_t min_rows = 3 + cols * kLanes / 64;
  int64_t r = begin;
  for (; r + min_rows <= end; r += kLanes) f(r, std::min(kLanes, end - r));
  return std::min(r, end);
}

void Softmax(const float* x, float* y, int64_t cols, int64_t begin,
             int64_t end) {
  begin = ForBlocks(cols, begin, end, [=](int64_t r, int64_t rows) HWY_ATTR {
    Columns z(x + r * cols, rows, cols);
    const V sum = ExpOf(z, MaxOf(z).max);
    const V scale = hn::Div(hn::Set(D(), 1.0f), sum);
    for (int64_t c = 0; c < cols; ++c) z.Set(c, hn::Mul(z[c], scale));
    z.Store(y + r * cols);
  });
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
  begin = ForBlocks(cols, begin, end, [=](int64_t r, int64_t rows) HWY_ATTR {
    Columns z(logits + r * cols, rows, cols);
    const LaneMax row = MaxOf(z);
    const V label = LabelsOf(labels, nullptr, r, rows);
    const V z_label = Find(z, row, label).value;
    const V sum = ExpOf(z, row.max);
    StoreRows(LossOfLanes(row, z_label, sum), row_loss + r, rows);
  });
  for (int64_t r = begin; r < end; ++r) {
    const float* z = logits + r * cols;
    const RowMax row = MaxOfRow(z, cols);
    const float sum = ExpOfRow(z, row.max, nullptr, cols);
    row_loss[r] = LossOfRow(row, z[labels[r]], sum);
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
  const D d;
  const V hot = hn::Set(d, alpha);
  begin = ForBlocks(cols, begin, end, [=](int64_t r, int64_t rows) HWY_ATTR {
    Columns z(logits + r * cols, rows, cols);
    const V label = LabelsOf(labels, indices, r, rows);
    const LaneMax row = MaxOf(z);
    const AtLabel found = Find(z, row, label);
    const V sum = ExpOf(z, row.max);
    StoreRows(found.correct, row_correct + r, rows);
    StoreRows(LossOfLanes(row, found.value, sum), row_loss + r, rows);
    const V scale = hn::Div(hot, sum);
    V at = hn::Zero(d);
    for (int64_t c = 0; c < cols; ++c) {
      const V target = hn::IfThenElseZero(hn::Eq(at, label), hot);
      z.Set(c, hn::MulSub(z[c], scale, target));
      at = hn::Add(at, hn::Set(d, 1.0f));
    }
    z.Store(dlogits + r * cols);
  });
  for (int64_t r = begin; r < end; ++r) {
    const float* z = logits + r * cols;
    float* dz = dlogits + r * cols;
    const int64_t label = labels[indices != nullptr ? indices[r] : r];
    const RowMax row = MaxOfRow(z, cols);
    row_correct[r] = Correct(z, row, label);
    const float z_label = z[label];  // read first, because dz may alias z
    const float sum = ExpOfRow(z, row.max, dz, cols);
    row_loss[r] = LossOfRow(row, z_label, sum);
    const V scale = hn::Set(d, alpha / sum);
    // As floats: exact up to 2^24 classes.
    const V at = hn::Set(d, static_cast<float>(label));
    ForVectors(cols, [=](int64_t i, auto lanes) HWY_ATTR {
      const auto is_label = hn::Eq(hn::Iota(d, static_cast<float>(i)), at);
      const V target = hn::IfThenElseZero(is_label, hot);
      lanes.Store(hn::MulSub(lanes.Load(dz + i), scale, target), dz + i);
    });
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
