// SPDX-License-Identifier: Apache-2.0
// Optimizers: the new value of a param and of its state.
#ifndef ONESTEP_COMPILER_IR_OPS_UPDATE_H_
#define ONESTEP_COMPILER_IR_OPS_UPDATE_H_

#include <vector>

#include "compiler/ir/fields.h"
#include "compiler/ir/value.h"
#include "kernels/update.h"

namespace onestep {

struct SgdAttrs {
  float weight_decay = 0;
  ONESTEP_FIELDS(SgdAttrs, weight_decay);
};

struct MomentumAttrs {
  float momentum = 0.9f;
  bool nesterov = false;
  float weight_decay = 0;
  ONESTEP_FIELDS(MomentumAttrs, momentum, nesterov, weight_decay);
};

// Adam (Kingma and Ba, 2015, algorithm 1) with L2 decay; `decoupled` is AdamW
// (Loshchilov and Hutter, 2019): w' = w - lr weight_decay w - lr mhat/(..).
struct AdamAttrs {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0;
  bool decoupled = false;
  ONESTEP_FIELDS(AdamAttrs, beta1, beta2, epsilon, weight_decay, decoupled);
};

// The operands and results of any optimizer's op: (w, dw, states, lr[, step],
// hyper-parameters read at run time) -> w', states'. Result 0 is w', result
// 1 + i the new state i.
struct UpdateOp {
  struct Hyper {
    float value = 0;  // the attribute
    Value at;         // f32[] that is read instead; or no value
  };

  explicit UpdateOp(const Node& node);
  // Whether the last hyper-parameters are read at run time.
  bool reads_hypers() const { return !hypers.empty() && hypers.back().at; }

  UpdateRule rule;
  Value w, dw;
  std::vector<Value> states;
  Value lr;
  Value step;                 // counts from 1; or no value
  std::vector<Hyper> hypers;  // the float attributes, in their order
  bool flag = false;          // the bool attribute
};

// Whether an sgd_update has a weight decay, which may be an attribute or an
// operand.
bool HasWeightDecay(const Node& sgd_update);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_UPDATE_H_
