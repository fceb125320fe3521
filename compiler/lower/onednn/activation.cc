// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/onednn/onednn_op.h"

namespace onestep::onednn {

absl::StatusOr<OnednnCall> LowerActivation(const OnednnOp& op) {
  return op.library().MakeActivation(op.attrs<ActivationAttrs>().activation,
                                     op.In(0), op.Out());
}

// The gradient alone: none makes a bias gradient besides.
absl::StatusOr<OnednnCall> LowerActivationGrad(const OnednnOp& op) {
  const ActivationGradOp grad(op.node());
  if (grad.attrs.bias != BiasGrad::kNone || op.IsOver(grad.saved)) {
    return op.NoPrimitive();
  }
  return op.library().MakeActivationGrad(
      grad.attrs.activation, op.View(grad.saved), op.View(grad.dy), op.Out());
}

}  // namespace onestep::onednn
