// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "compiler/lower/cuda/cuda_op.h"

namespace onestep::gpu {
namespace {

CudaKernel LowerUpdate(const CudaOp& op) {
  const UpdateOp update(op.node());
  struct State {
    Place in, out;
  };
  struct Hyper {
    float value;
    Place at;
  };
  std::vector<State> states;
  for (size_t i = 0; i < update.states.size(); ++i) {
    states.push_back(
        {op.PlaceOf(update.states[i]), op.Out(1 + static_cast<int>(i))});
  }
  std::vector<Hyper> hypers;
  for (const UpdateOp::Hyper& hyper : update.hypers) {
    hypers.push_back({hyper.value, op.PlaceOf(hyper.at)});
  }
  return Plain([=, rule = update.rule, flag = update.flag,
                w = op.PlaceOf(update.w), dw = op.PlaceOf(update.dw),
                w_out = op.Out(), lr = op.PlaceOf(update.lr),
                step = op.PlaceOf(update.step), n = op.n()](At at) {
    cuda::UpdateParams p = {};
    p.rule = rule;
    p.w = F32(at, w);
    p.dw = F32(at, dw);
    p.w_out = F32(at, w_out);
    for (size_t i = 0; i < states.size(); ++i) {
      p.state[i] = F32(at, states[i].in);
      p.state_out[i] = F32(at, states[i].out);
    }
    p.lr = F32(at, lr);
    p.step = F32(at, step);
    for (size_t i = 0; i < hypers.size(); ++i) {
      p.hyper[i].value = hypers[i].value;
      p.hyper[i].at = F32(at, hypers[i].at);
    }
    p.flag = flag;
    p.n = n;
    return cuda::Update(p);
  });
}

}  // namespace

#define RULE(Rule) \
  CudaKernel Lower##Rule##Update(const CudaOp& op) { return LowerUpdate(op); }
ONESTEP_UPDATE_RULES(RULE)
#undef RULE

}  // namespace onestep::gpu
