// SPDX-License-Identifier: Apache-2.0
// Optimizers: the new value of a param and of its state.
#ifndef ONESTEP_COMPILER_IR_OPS_UPDATE_H_
#define ONESTEP_COMPILER_IR_OPS_UPDATE_H_

#include <vector>

#include "compiler/ir/fields.h"
#include "compiler/ir/value.h"

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
  explicit UpdateOp(const Node& node);

  Value w, dw;
  std::vector<Value> states;
  Value lr;
  Value step;                // counts from 1; or no value
  std::vector<Value> hyper;  // f32[]; none: they are attributes
};

// Whether an sgd_update has a weight decay, which may be an attribute or an
// operand.
bool HasWeightDecay(const Node& sgd_update);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_UPDATE_H_
