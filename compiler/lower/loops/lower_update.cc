// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/loops/loop_lowering.h"
#include "compiler/lower/update_operands.h"
#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/update.h"

namespace onestep {
namespace {

// Where an update's tensors are.
struct Tensors {
  int states = 0;
  float* const* w = nullptr;
  float* const* dw = nullptr;
  float* const* state[kMaxUpdateStates] = {};
  float* const* w_out = nullptr;
  float* const* state_out[kMaxUpdateStates] = {};

  cpu::UpdateArrays Get() const {
    cpu::UpdateArrays arrays = {*w, *dw, {}, *w_out, {}};
    for (int i = 0; i < states; ++i) {
      arrays.state[i] = *state[i];
      arrays.state_out[i] = *state_out[i];
    }
    return arrays;
  }
};

// Where its scalars are, or their values.
struct Scalars {
  float* const* lr = nullptr;
  float* const* step = nullptr;
  float* const* hyper[kMaxUpdateHypers] = {};
  cpu::UpdateHypers values = {};

  cpu::UpdateHypers Get() const {
    cpu::UpdateHypers hypers = values;
    hypers.lr = *lr;
    if (step != nullptr) hypers.step = *step;
    for (int i = 0; i < kMaxUpdateHypers; ++i) {
      if (hyper[i] != nullptr) hypers.hyper[i].at = *hyper[i];
    }
    return hypers;
  }
};

class UpdateLowering : public LoopLowering {
 public:
  UpdateLowering(const LowerContext& context, Node& node)
      : LoopLowering(context, node), operands_(OperandsOfUpdate(node)) {}

  Call Run() const { return models() > 1 ? Models() : OneModel(); }

 private:
  Tensors FindTensors() const {
    Tensors tensors = {.states = operands_.states, .w = In(0), .dw = In(1)};
    tensors.w_out = Out();
    for (int i = 0; i < operands_.states; ++i) {
      tensors.state[i] = In(2 + i);
      tensors.state_out[i] = Out(1 + i);
    }
    return tensors;
  }

  Scalars FindScalars() const {
    Scalars scalars = {.lr = In(operands_.lr)};
    if (operands_.step >= 0) scalars.step = In(operands_.step);
    scalars.values.flag = operands_.flag;
    for (int i = 0; i < operands_.hypers; ++i) {
      const UpdateOperands::Hyper& hyper = operands_.hyper[i];
      scalars.values.hyper[i].value = hyper.value;
      if (hyper.operand >= 0) scalars.hyper[i] = In(hyper.operand);
    }
    return scalars;
  }

  Call OneModel() const {
    return Elementwise([rule = operands_.rule, tensors = FindTensors(),
                        scalars = FindScalars()](int64_t b, int64_t n) {
      cpu::Update(rule, tensors.Get(), scalars.Get(), b, b + n);
    });
  }

  // The coefficients of all models once, then parts of all values.
  Call Models() const {
    const UpdateRule rule = operands_.rule;
    const int64_t models = this->models();
    context_.chain.RequestScratch(cpu::CoefficientFloats(rule, models) *
                                  static_cast<int64_t>(sizeof(float)));
    return [=, coefficients = Scratch(), scalars = FindScalars(),
            loop = Elementwise([=, coefficients = Scratch(),
                                tensors = FindTensors(),
                                flag = operands_.flag](int64_t b, int64_t n) {
              cpu::InterleavedUpdate(rule, tensors.Get(), *coefficients, flag,
                                     {models, b, b + n});
            })] {
      cpu::PrepareCoefficients(rule, scalars.Get(), models, *coefficients);
      loop();
    };
  }

  const UpdateOperands operands_;
};

}  // namespace

Chain::Call LowerUpdate(const LowerContext& context, Node& node) {
  return UpdateLowering(context, node).Run();
}

}  // namespace onestep
