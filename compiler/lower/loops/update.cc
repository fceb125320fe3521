// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/update.h"

#include "compiler/lower/loops/loop_op.h"
#include "kernels/cpu/models/interleaved.h"

namespace onestep::loops {
namespace {

// Where an update's tensors are.
struct Tensors {
  Tensors(const LoopOp& op, const UpdateOp& update)
      : states(static_cast<int>(update.states.size())),
        w(op.At(update.w)),
        dw(op.At(update.dw)),
        w_out(op.Out()) {
    for (int i = 0; i < states; ++i) {
      state[i] = op.At(update.states[i]);
      state_out[i] = op.Out(1 + i);
    }
  }

  cpu::UpdateArrays Get() const {
    cpu::UpdateArrays arrays = {*w, *dw, {}, *w_out, {}};
    for (int i = 0; i < states; ++i) {
      arrays.state[i] = *state[i];
      arrays.state_out[i] = *state_out[i];
    }
    return arrays;
  }

  int states;
  float *const *w, *const *dw, *const *w_out;
  float* const* state[kMaxUpdateStates] = {};
  float* const* state_out[kMaxUpdateStates] = {};
};

// Where its scalars are, or their values.
struct Scalars {
  Scalars(const LoopOp& op, const UpdateOp& update)
      : lr(op.At(update.lr)), step(op.At(update.step)) {
    values.flag = update.flag;
    for (size_t i = 0; i < update.hypers.size(); ++i) {
      values.hyper[i].value = update.hypers[i].value;
      hyper[i] = op.At(update.hypers[i].at);
    }
  }

  cpu::UpdateHypers Get() const {
    cpu::UpdateHypers hypers = values;
    hypers.lr = *lr;
    if (step != nullptr) hypers.step = *step;
    for (int i = 0; i < kMaxUpdateHypers; ++i) {
      if (hyper[i] != nullptr) hypers.hyper[i].at = *hyper[i];
    }
    return hypers;
  }

  float *const *lr, *const *step;
  float* const* hyper[kMaxUpdateHypers] = {};
  cpu::UpdateHypers values = {};
};

// The coefficients of all models once, then parts of all values.
LoopOp::Call UpdateOfModels(const LoopOp& op, const UpdateOp& update) {
  const int64_t models = op.models();
  float* const* coefficients =
      op.Scratch(cpu::CoefficientFloats(update.rule, models) *
                 static_cast<int64_t>(sizeof(float)));
  return [=, rule = update.rule, scalars = Scalars(op, update),
          loop = op.Elementwise(
              [=, rule = update.rule, flag = update.flag,
               tensors = Tensors(op, update)](int64_t b, int64_t n) {
                cpu::InterleavedUpdate(rule, tensors.Get(), *coefficients, flag,
                                       {models, b, b + n});
              })] {
    cpu::PrepareCoefficients(rule, scalars.Get(), models, *coefficients);
    loop();
  };
}

Implementations LowerUpdate(const LoopOp& op) {
  return op.Loop([op]() -> LoopOp::Call {
    const UpdateOp update(op.node());
    if (op.models() > 1) return UpdateOfModels(op, update);
    return op.Elementwise(
        [rule = update.rule, tensors = Tensors(op, update),
         scalars = Scalars(op, update)](int64_t b, int64_t n) {
          cpu::Update(rule, tensors.Get(), scalars.Get(), b, b + n);
        });
  });
}

}  // namespace

#define RULE(Rule)                                        \
  Implementations Lower##Rule##Update(const LoopOp& op) { \
    return LowerUpdate(op);                               \
  }
ONESTEP_UPDATE_RULES(RULE)
#undef RULE

}  // namespace onestep::loops
