// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/onednn/onednn_op.h"

namespace onestep::onednn {

// w += -(dw * lr): one primitive when it is in place.
absl::StatusOr<OnednnCall> LowerSgdUpdate(const OnednnOp& op) {
  const UpdateOp update(op.node());
  if (HasWeightDecay(op.node()) || !op.IsOver(update.w)) {
    return op.NoPrimitive();
  }
  return op.library().MakeBinary(OnednnBinary::kMul, op.View(update.dw),
                                 op.View(update.lr), op.Out(), -1, true);
}

}  // namespace onestep::onednn
