// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/onednn/onednn_op.h"

namespace onestep::onednn {

absl::StatusOr<OnednnCall> LowerSoftmax(const OnednnOp& op) {
  return op.library().MakeSoftmax(op.In(0), op.Out());
}

absl::StatusOr<OnednnCall> LowerSoftmaxGrad(const OnednnOp& op) {
  if (op.IsOver(op.node().operands[0])) return op.NoPrimitive();
  return op.library().MakeSoftmaxGrad(op.In(0), op.In(1), op.Out());
}

absl::StatusOr<OnednnCall> LowerMseGrad(const OnednnOp& op) {
  if (op.IsOver(op.node().operands[1])) return op.NoPrimitive();
  const float n = BatchElements(op.node());
  return op.library().MakeBinary(OnednnBinary::kSub, op.In(0), op.In(1),
                                 op.Out(), 2.0f / n, false);
}

}  // namespace onestep::onednn
