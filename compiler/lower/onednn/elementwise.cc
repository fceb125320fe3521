// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/onednn/onednn_op.h"

namespace onestep::onednn {
namespace {

// oneDNN may write over the first operand only.
absl::StatusOr<OnednnCall> Commutative(const OnednnOp& op, OnednnBinary kind) {
  const bool swap = op.IsOver(op.node().operands[1]);
  return op.library().MakeBinary(kind, op.In(swap), op.In(!swap), op.Out(), 1,
                                 false);
}

}  // namespace

absl::StatusOr<OnednnCall> LowerCast(const OnednnOp& op) {
  return op.library().MakeReorder(op.In(0), op.Out());
}

absl::StatusOr<OnednnCall> LowerScale(const OnednnOp& op) {
  return op.library().MakeScale(op.attrs<ScaleAttrs>().alpha, op.In(0),
                                op.Out());
}

absl::StatusOr<OnednnCall> LowerMulScalar(const OnednnOp& op) {
  return op.library().MakeBinary(OnednnBinary::kMul, op.In(0), op.In(1),
                                 op.Out(), op.attrs<ScaleAttrs>().alpha, false);
}

absl::StatusOr<OnednnCall> LowerAdd(const OnednnOp& op) {
  return Commutative(op, OnednnBinary::kAdd);
}

absl::StatusOr<OnednnCall> LowerMul(const OnednnOp& op) {
  return Commutative(op, OnednnBinary::kMul);
}

absl::StatusOr<OnednnCall> LowerAddBias(const OnednnOp& op) {
  return op.library().MakeBinary(OnednnBinary::kAdd, op.In(0), op.In(1),
                                 op.Out(), 1, false);
}

absl::StatusOr<OnednnCall> LowerReduceRows(const OnednnOp& op) {
  return op.library().MakeReduceRows(op.In(0), op.Out());
}

}  // namespace onestep::onednn
