// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/models/interleaved_loss.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// A float64 sum for each lane.
class Sums {
 public:
  HWY_INLINE Sums() {
    HWY_UNROLL(2)
    for (auto& sum : sums_) sum = hn::Zero(Wide());
  }
  HWY_INLINE void Add(V x) {
#if HWY_TARGET == HWY_SCALAR
    sums_[0] = hn::Add(sums_[0], hn::PromoteTo(Wide(), x));
#else
    const auto low = hn::LowerHalf(Narrow(), x);
    const auto high = hn::UpperHalf(Narrow(), x);
    sums_[0] = hn::Add(sums_[0], hn::PromoteTo(Wide(), low));
    sums_[1] = hn::Add(sums_[1], hn::PromoteTo(Wide(), high));
#endif
  }
  HWY_INLINE V Times(float alpha) const {
    const auto scale = hn::Set(Wide(), static_cast<double>(alpha));
    const auto low = hn::DemoteTo(Narrow(), hn::Mul(scale, sums_[0]));
#if HWY_TARGET == HWY_SCALAR
    return low;
#else
    const auto high = hn::DemoteTo(Narrow(), hn::Mul(scale, sums_[1]));
    return hn::Combine(D(), high, low);
#endif
  }

 private:
  using Wide = hn::ScalableTag<double>;
  using Narrow = hn::Rebind<float, Wide>;
  hn::Vec<Wide> sums_[kLanes / hn::MaxLanes(Wide())];
};

// One row of logits, with one model per lane. The computation is that of a row
// in loss.cc.
template <class Lanes>
class Row {
 public:
  HWY_INLINE void Load(const float* z, int64_t cols, int64_t stride,
                       Lanes lanes) {
    const D d;
    cols_ = cols;
    // A local variable, because the member would be kept in memory.
    V max = hn::Set(d, -std::numeric_limits<float>::infinity());
    V taint = hn::Zero(d);
    for (int64_t c = 0; c < cols; ++c) {
      const V x = lanes.Load(z + c * stride);
      hn::Store(x, d, values_ + c * kLanes);
      max = hn::Max(max, x);
      // x - x is 0 if x is finite, else NaN.
      taint = hn::Or(taint, hn::Sub(x, x));
    }
    max_ = max;
    finite_ = hn::Eq(taint, hn::Zero(d));
  }

  // Returns 1 in each lane where the first of the largest logits is at the
  // label, else 0.
  HWY_INLINE V Correct(int64_t label) const {
    const D d;
    const V none = hn::Set(d, static_cast<float>(cols_)), max = max_;
    V first = none, at = hn::Zero(d);
    for (int64_t c = 0; c < cols_; ++c) {  // no branch that depends on labels
      const V best = hn::IfThenElse(hn::Eq((*this)[c], max), at, none);
      first = hn::Min(first, best);
      at = hn::Add(at, hn::Set(d, 1.0f));
    }
    const M found = hn::Eq(first, hn::Set(d, static_cast<float>(label)));
    const M correct = hn::And(finite_, found);
    return hn::IfThenElseZero(correct, hn::Set(d, 1.0f));
  }

  // Replaces each value z by exp(z - max) and returns their sum.
  HWY_INLINE V Exp() {
    const V max = max_;
    V sum = hn::Zero(D());
    for (int64_t c = 0; c < cols_; ++c) {
      const V e = ExpOfNonPositive(hn::Sub((*this)[c], max));
      hn::Store(e, D(), values_ + c * kLanes);
      sum = hn::Add(sum, e);
    }
    return sum;
  }

  HWY_INLINE V Loss(V z_label, V sum) const {
    const D d;
    const V loss = hn::Add(hn::Sub(max_, z_label), hn::Log(d, sum));
    const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
    return hn::IfThenElse(finite_, loss, nan);
  }

  HWY_INLINE V operator[](int64_t c) const {
    return hn::Load(D(), values_ + c * kLanes);
  }

 private:
  int64_t cols_;
  V max_;
  M finite_;
  HWY_ALIGN float values_[kInterleavedCols * kLanes];
};

// The number of rows that are loaded before the gradient of the first is
// stored: where rows share cache lines, a load that follows a masked store to
// its line stalls.
constexpr int64_t kRowsAtOnce = 4;

template <class Lanes>
HWY_INLINE void XentGradOf(const InterleavedXentGradArgs& args, int64_t k,
                           Lanes lanes) {
  const D d;
  const V hot = lanes.Load(args.alpha + k), one = hn::Set(d, 1.0f);
  const int64_t cols = args.cols, stride = args.models;
  Sums loss;
  V correct = hn::Zero(d);  // exact in float32: rows < 2^24
  HWY_ALIGN float db[kInterleavedCols * kLanes];
  for (int64_t c = 0; c < cols; ++c) hn::Store(hn::Zero(d), d, db + c * kLanes);
  Row<Lanes> rows[kRowsAtOnce];
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t next = r % kRowsAtOnce;
    for (int64_t i = r; next == 0 && i < std::min(r + kRowsAtOnce, args.rows);
         ++i) {
      rows[i - r].Load(args.logits + i * cols * stride + k, cols, stride,
                       lanes);
    }
    Row<Lanes>& row = rows[next];
    const int64_t label =
        args.labels[args.indices != nullptr ? args.indices[r] : r];
    correct = hn::Add(correct, row.Correct(label));
    const V z_label = row[label];
    const V sum = row.Exp();
    loss.Add(row.Loss(z_label, sum));
    const V scale = hn::Div(hot, sum);
    const V hot_column = hn::Set(d, static_cast<float>(label));
    V at = hn::Zero(d);
    float* dz = args.dlogits + r * cols * stride + k;
    for (int64_t c = 0; c < cols; ++c) {
      const V target = hn::IfThenElseZero(hn::Eq(at, hot_column), hot);
      const V grad = hn::MulSub(row[c], scale, target);
      lanes.Store(grad, dz + c * stride);
      float* const sum_of_rows = db + c * kLanes;
      hn::Store(hn::Add(hn::Load(d, sum_of_rows), grad), d, sum_of_rows);
      at = hn::Add(at, one);
    }
  }
  for (int64_t c = 0; c < cols && args.db != nullptr; ++c) {
    const int64_t i = c * stride + k;
    V sum = hn::Load(d, db + c * kLanes);
    if (args.bias != nullptr) sum = hn::Add(lanes.Load(args.bias + i), sum);
    lanes.Store(sum, args.db + i);
  }
  lanes.Store(loss.Times(args.loss_alpha), args.loss + k);
  lanes.Store(correct, args.correct + k);
}

void InterleavedXentGrad(const InterleavedXentGradArgs& args, int64_t begin,
                         int64_t end) {
  ForVectors(end - begin, [&](int64_t k, auto lanes)
                              HWY_ATTR { XentGradOf(args, begin + k, lanes); });
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(InterleavedXentGrad);

void InterleavedXentGrad(const InterleavedXentGradArgs& args,
                         int64_t model_begin, int64_t model_end) {
  HWY_DYNAMIC_DISPATCH(InterleavedXentGrad)(args, model_begin, model_end);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
