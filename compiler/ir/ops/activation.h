// SPDX-License-Identifier: Apache-2.0
// Activations: one op with an attribute, and one for their gradients. In the
// text form they have the names of the activations: relu, relu_grad.
#ifndef ONESTEP_COMPILER_IR_OPS_ACTIVATION_H_
#define ONESTEP_COMPILER_IR_OPS_ACTIVATION_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/fields.h"
#include "compiler/ir/value.h"
#include "kernels/activation.h"

namespace onestep {

class Graph;

// What a fused op does with the bias gradient of the gradient it makes.
enum class BiasGrad : uint8_t { kNone, kGrad, kUpdate };
const char* ToString(BiasGrad);

struct ActivationAttrs {
  Activation activation = Activation::kNone;
  ONESTEP_FIELDS(ActivationAttrs, activation);
};

struct ActivationGradAttrs {
  Activation activation = Activation::kNone;
  BiasGrad bias = BiasGrad::kNone;
  ONESTEP_FIELDS(ActivationGradAttrs, activation, bias);
};

// (saved, dy[, bias]) -> dx[, db or bias + db].
struct ActivationGradOp {
  explicit ActivationGradOp(const Node& node);

  ActivationGradAttrs attrs;
  Value saved;  // the activation's result y, or its operand x
  Value dy;
  Value bias;  // where attrs.bias is update
  enum Result { kDx, kBiasGrad };
};

Value AddActivation(Graph& graph, Activation activation, Value x);
Value AddActivationGrad(Graph& graph, Activation activation, Value saved,
                        Value dy);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_ACTIVATION_H_
