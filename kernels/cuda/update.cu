// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cuda/update.cuh"

namespace onestep::cuda {

Launch Update(const UpdateParams& params) {
  UpdateArgs args = {};
  args.w = params.w;
  args.dw = params.dw;
  args.lr = params.lr;
  args.step = params.step;
  args.w_out = params.w_out;
  args.n = params.n;
  args.flag = params.flag;
  for (int i = 0; i < kMaxUpdateHypers; ++i) {
    args.hyper[i] = params.hyper[i].value;
    args.hyper_at[i] = params.hyper[i].at;
  }
  bool wide = ByFours(params.n, {params.w, params.dw, params.w_out});
  for (int s = 0; s < kMaxUpdateStates; ++s) {
    args.state[s] = params.state[s];
    args.state_out[s] = params.state_out[s];
    wide = wide && ByFours(params.n, {params.state[s], params.state_out[s]});
  }
  Launch launch;
  switch (params.rule) {
#define RULE(Rule)                                         \
  case UpdateRule::k##Rule:                                \
    for (int i = 0; i < rules::Rule::kCorrections; ++i) {  \
      const double base = params.hyper[i].value;           \
      args.log[i] = static_cast<float>(std::log(base));    \
    }                                                      \
    launch = wide ? ONESTEP_LAUNCH(Rule##Update<4>, args)  \
                  : ONESTEP_LAUNCH(Rule##Update<1>, args); \
    break;
    ONESTEP_UPDATE_RULES(RULE)
#undef RULE
  }
  return OverElements(launch, params.n, wide ? 4 : 1);
}

}  // namespace onestep::cuda
