// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/onednn/onednn_op.h"
#include "runtime/base/status.h"

namespace onestep::onednn {

OnednnEltwise EltwiseOf(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return OnednnEltwise::kRelu;
    case Activation::kTanh:
      return OnednnEltwise::kTanh;
    case Activation::kSigmoid:
      return OnednnEltwise::kLogistic;
    case Activation::kGelu:
      return OnednnEltwise::kGelu;
    case Activation::kNone:
      break;
  }
  CHECK(false);
}

absl::StatusOr<OnednnCall> LowerActivation(const OnednnOp& op) {
  return op.library().MakeEltwise(
      EltwiseOf(op.attrs<ActivationAttrs>().activation), 0, op.In(0), op.Out());
}

// The gradient alone: none makes a bias gradient besides.
absl::StatusOr<OnednnCall> LowerActivationGrad(const OnednnOp& op) {
  const ActivationGradOp grad(op.node());
  if (grad.attrs.bias != BiasGrad::kNone || op.IsOver(grad.saved)) {
    return op.NoPrimitive();
  }
  return op.library().MakeEltwiseGrad(EltwiseOf(grad.attrs.activation),
                                      op.View(grad.saved), op.View(grad.dy),
                                      op.Out());
}

}  // namespace onestep::onednn
