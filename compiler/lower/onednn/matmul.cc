// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/onednn/onednn_op.h"

namespace onestep::onednn {

absl::StatusOr<OnednnCall> LowerMatMul(const OnednnOp& op) {
  const MatMulOp matmul(op.node());
  // The sum post-op adds to the destination.
  if (matmul.c && !op.IsOver(matmul.c)) return op.NoPrimitive();
  const OnednnView a = op.View(matmul.a), b = op.View(matmul.b);
  Onednn::MatMul args;
  args.a = matmul.attrs.trans_a ? a.Transposed() : a;
  args.b = matmul.attrs.trans_b ? b.Transposed() : b;
  args.c = op.Out();
  if (matmul.bias) args.bias = op.View(matmul.bias);
  args.accumulate = matmul.attrs.accumulate;
  args.activation = matmul.attrs.activation;
  return op.library().MakeMatMul(args);
}

}  // namespace onestep::onednn
