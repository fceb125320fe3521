// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/models/interleaved_update.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

static_assert(kRepeatPad >= kLanes);

// Calls f(i, k, lanes) for the vectors of the range; value i is of model k.
template <class F>
HWY_INLINE void ForRange(const InterleavedRange& range, F f) {
  const int64_t step = kLanes % range.models;
  int64_t k = range.begin % range.models;
  ForVectors(range.end - range.begin, [&](int64_t i, auto lanes) HWY_ATTR {
    f(range.begin + i, k, lanes);
    k += step;
    if (k >= range.models) k -= range.models;
  });
}

HWY_INLINE V Repeated(const float* x, int64_t k) {
  return hn::LoadU(D(), x + k);
}

void InterleavedScale(const float* alpha, const float* x, float* y,
                      const InterleavedRange& range) {
  ForRange(range, [=](int64_t i, int64_t k, auto lanes) HWY_ATTR {
    lanes.Store(hn::Mul(Repeated(alpha, k), lanes.Load(x + i)), y + i);
  });
}

int64_t CoefficientFloats(UpdateRule rule, int64_t models) {
  int64_t count = 0;
  WithRule(rule, [&](auto rule_struct) HWY_ATTR {
    count = decltype(rule_struct)::kCoefficients;
  });
  return count * (models + kRepeatPad);
}

void PrepareCoefficients(UpdateRule rule, const UpdateHypers& hypers,
                         int64_t models, float* coefficients) {
  const int64_t stride = models + kRepeatPad;
  WithRule(rule, [&](auto rule_struct) HWY_ATTR {
    using Rule = decltype(rule_struct);
    const Coefficients<Rule> prepared(hypers);
    for (int64_t k = 0; k < models; ++k) {
      float c[Rule::kCoefficients];
      prepared.Of(k, c);
      for (int j = 0; j < Rule::kCoefficients; ++j) {
        coefficients[j * stride + k] = c[j];
      }
    }
  });
}

void InterleavedUpdate(UpdateRule rule, const UpdateArrays& arrays,
                       const float* coefficients, bool flag,
                       const InterleavedRange& range) {
  WithRule(rule, [&](auto rule_struct) HWY_ATTR {
    using Rule = decltype(rule_struct);
    const int64_t stride = range.models + kRepeatPad;
    V c[Rule::kCoefficients];
    for (int j = 0; j < Rule::kShared; ++j) {
      c[j] = hn::Set(D(), coefficients[j * stride]);
    }
    ForRange(range, [=](int64_t i, int64_t k, auto lanes) HWY_ATTR {
      V own[Rule::kCoefficients];
      for (int j = 0; j < Rule::kCoefficients; ++j) {
        own[j] =
            j < Rule::kShared ? c[j] : Repeated(coefficients + j * stride, k);
      }
      UpdateVector<Rule>(arrays, i, own, flag, lanes);
    });
  });
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(InterleavedScale);
HWY_EXPORT(CoefficientFloats);
HWY_EXPORT(PrepareCoefficients);
HWY_EXPORT(InterleavedUpdate);

void InterleavedScale(const float* alpha, const float* x, float* y,
                      const InterleavedRange& range) {
  HWY_DYNAMIC_DISPATCH(InterleavedScale)(alpha, x, y, range);
}

namespace {

// What follows the values of the models.
void FillPad(int64_t models, float* y) {
  for (int64_t i = models; i < models + kRepeatPad; ++i) y[i] = y[i - models];
}

}  // namespace

int64_t CoefficientFloats(UpdateRule rule, int64_t models) {
  return HWY_DYNAMIC_DISPATCH(CoefficientFloats)(rule, models);
}

void PrepareCoefficients(UpdateRule rule, const UpdateHypers& hypers,
                         int64_t models, float* coefficients) {
  HWY_DYNAMIC_DISPATCH(PrepareCoefficients)(rule, hypers, models, coefficients);
  float* const end = coefficients + CoefficientFloats(rule, models);
  for (float* y = coefficients; y < end; y += models + kRepeatPad) {
    FillPad(models, y);
  }
}

void InterleavedUpdate(UpdateRule rule, const UpdateArrays& arrays,
                       const float* coefficients, bool flag,
                       const InterleavedRange& range) {
  HWY_DYNAMIC_DISPATCH(InterleavedUpdate)
  (rule, arrays, coefficients, flag, range);
}

void RepeatModels(float alpha, const float* x, int64_t models, float* y) {
  for (int64_t i = 0; i < models; ++i) y[i] = alpha * x[i];
  FillPad(models, y);
}

void InterleavedBroadcast(const float* x, float* y, int64_t n, int64_t models) {
  for (int64_t i = 0; i < n; ++i) std::fill_n(y + i * models, models, x[i]);
}

void TakeModel(const float* x, int64_t models, int64_t k, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i * models + k];
}

void PutModel(const float* y, int64_t models, int64_t k, float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i * models + k] = y[i];
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
