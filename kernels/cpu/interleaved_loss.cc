// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernels/cpu/interleaved.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/interleaved_loss.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// A float64 sum in every lane.
class Sums {
 public:
  HWY_INLINE void Add(V x) {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(x, D(), lanes);
    HWY_UNROLL(4)
    for (int64_t i = 0; i < kLanes; i += kWide) {
      const auto sum = hn::Load(wide_, sums_ + i);
      const auto term = hn::PromoteTo(wide_, hn::Load(narrow_, lanes + i));
      hn::Store(hn::Add(sum, term), wide_, sums_ + i);
    }
  }
  HWY_INLINE V Times(float alpha) const {
    const auto scale = hn::Set(wide_, static_cast<double>(alpha));
    HWY_ALIGN float lanes[kLanes];
    for (int64_t i = 0; i < kLanes; i += kWide) {
      const auto sum = hn::Load(wide_, sums_ + i);
      hn::Store(hn::DemoteTo(narrow_, hn::Mul(scale, sum)), narrow_, lanes + i);
    }
    return hn::Load(D(), lanes);
  }

 private:
  using Wide = hn::ScalableTag<double>;
  static constexpr int64_t kWide = hn::MaxLanes(Wide());
  const Wide wide_ = {};
  const hn::Rebind<float, Wide> narrow_ = {};
  HWY_ALIGN double sums_[kLanes] = {};
};

// One row of logits, a model to a lane; steps as of a row in loss.cc.
template <class Lanes>
class Row {
 public:
  HWY_INLINE Row(const float* z, int64_t cols, int64_t stride, Lanes lanes)
      : cols_(cols) {
    const D d;
    max_ = hn::Set(d, -std::numeric_limits<float>::infinity());
    V taint = hn::Zero(d);
    for (int64_t c = 0; c < cols; ++c) {
      const V x = lanes.Load(z + c * stride);
      hn::Store(x, d, values_ + c * kLanes);
      max_ = hn::Max(max_, x);
      // x - x is 0, or NaN when x is not finite.
      taint = hn::Or(taint, hn::Sub(x, x));
    }
    finite_ = hn::Eq(taint, hn::Zero(d));
  }

  // 1 where the first of the largest logits is at the label, else 0.
  HWY_INLINE V Correct(int64_t label) const {
    M correct = hn::And(finite_, hn::Eq((*this)[label], max_));
    for (int64_t c = 0; c < label; ++c) {
      correct = hn::AndNot(hn::Eq((*this)[c], max_), correct);
    }
    return hn::IfThenElseZero(correct, hn::Set(D(), 1.0f));
  }

  // The values become exp(z - max); returns their sum.
  HWY_INLINE V Exp() {
    V sum = hn::Zero(D());
    for (int64_t c = 0; c < cols_; ++c) {
      const V e = ExpOfNonPositive(hn::Sub((*this)[c], max_));
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
  const int64_t cols_;
  V max_;
  M finite_;
  HWY_ALIGN float values_[kInterleavedCols * kLanes];
};

template <class Lanes>
HWY_INLINE void XentGradOf(const InterleavedXentGradArgs& args, int64_t k,
                           Lanes lanes) {
  const D d;
  const V hot = lanes.Load(args.alpha + k);
  Sums loss, correct;
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t first = r * args.cols * args.models + k;
    const int64_t label =
        args.labels[args.indices != nullptr ? args.indices[r] : r];
    Row<Lanes> row(args.logits + first, args.cols, args.models, lanes);
    correct.Add(row.Correct(label));
    const V z_label = row[label];
    const V sum = row.Exp();
    loss.Add(row.Loss(z_label, sum));
    const V scale = hn::Div(hot, sum);
    float* const dz = args.dlogits + first;
    for (int64_t c = 0; c < args.cols; ++c) {
      const V target = c == label ? hot : hn::Zero(d);
      lanes.Store(hn::MulSub(row[c], scale, target), dz + c * args.models);
    }
  }
  lanes.Store(loss.Times(args.loss_alpha), args.loss + k);
  lanes.Store(correct.Times(1), args.correct + k);
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
