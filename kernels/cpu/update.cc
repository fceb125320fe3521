// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/update.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/update.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

void Update(UpdateRule rule, const UpdateArrays& arrays,
            const UpdateHypers& hypers, int64_t begin, int64_t end) {
  WithRule(rule, [&](auto rule_struct) HWY_ATTR {
    using Rule = decltype(rule_struct);
    float scalars[Rule::kCoefficients];
    Coefficients<Rule>(hypers).Of(0, scalars);
    V c[Rule::kCoefficients];
    for (int j = 0; j < Rule::kCoefficients; ++j) {
      c[j] = hn::Set(D(), scalars[j]);
    }
    ForVectors(end - begin,
               [=, flag = hypers.flag](int64_t i, auto lanes) HWY_ATTR {
                 UpdateVector<Rule>(arrays, begin + i, c, flag, lanes);
               });
  });
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(Update);

void Update(UpdateRule rule, const UpdateArrays& arrays,
            const UpdateHypers& hypers, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(Update)(rule, arrays, hypers, begin, end);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
