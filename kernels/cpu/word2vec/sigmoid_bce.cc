// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/word2vec/sigmoid_bce.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/word2vec/sigmoid_bce.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// Calls f(i, lanes, z, w, y) for each vector of row r, with w = mask weights.
// In the unused lanes of a partial vector z and w are 0.
template <class F>
HWY_INLINE void ForPairs(const SigmoidBceArgs& args, int64_t r, F f) {
  const D d;
  const int64_t pair = r / args.block_rows * args.cols;
  const float* const z = args.z + r * args.cols;
  const float* const weights = args.weights + pair;
  const float* const labels =
      args.labels == nullptr ? nullptr : args.labels + pair;
  const V mask = hn::Set(d, args.mask[r]), one = hn::Set(d, 1.0f);
  const V positives = hn::Set(d, static_cast<float>(args.positives));
  ForVectors(args.cols, [&](int64_t i, auto lanes) HWY_ATTR {
    const auto is_positive =
        hn::Lt(hn::Iota(d, static_cast<float>(i)), positives);
    const V y = labels == nullptr ? hn::IfThenElseZero(is_positive, one)
                                  : lanes.Load(labels + i);
    f(i, lanes, lanes.Load(z + i), hn::Mul(mask, lanes.Load(weights + i)), y);
  });
}

void SigmoidBceRows(const SigmoidBceArgs& args, float* row_loss, int64_t begin,
                    int64_t end) {
  const D d;
  for (int64_t r = begin; r < end; ++r) {
    V sum = hn::Zero(d);
    ForPairs(args, r, [&](int64_t, auto, V z, V w, V y) HWY_ATTR {
      const V e = ExpOfNonPositive(hn::Neg(hn::Abs(z)));
      // w softplus(z) - w y z, arranged so that no large terms cancel.
      const V above = hn::IfThenElseZero(hn::Gt(z, hn::Zero(d)), w);
      const V linear = hn::Mul(hn::NegMulAdd(w, y, above), z);
      sum = hn::Add(sum, hn::MulAdd(w, Log1pOfUnit(e), linear));
    });
    row_loss[r] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

void SigmoidBceGradRows(const SigmoidBceArgs& args, float* dz, int64_t begin,
                        int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    float* const to = dz + r * args.cols;
    ForPairs(args, r, [=](int64_t i, auto lanes, V z, V w, V y) HWY_ATTR {
      lanes.Store(hn::Mul(w, hn::Sub(Sigmoid(z), y)), to + i);
    });
  }
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(SigmoidBceRows);
HWY_EXPORT(SigmoidBceGradRows);

void SigmoidBceRows(const SigmoidBceArgs& args, float* row_loss, int64_t begin,
                    int64_t end) {
  HWY_DYNAMIC_DISPATCH(SigmoidBceRows)(args, row_loss, begin, end);
}

void SigmoidBceGradRows(const SigmoidBceArgs& args, float* dz, int64_t begin,
                        int64_t end) {
  HWY_DYNAMIC_DISPATCH(SigmoidBceGradRows)(args, dz, begin, end);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
