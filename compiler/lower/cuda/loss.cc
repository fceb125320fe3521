// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_op.h"

namespace onestep::gpu {

CudaKernel LowerSoftmax(const CudaOp& op) {
  return Plain([x = op.In(0), y = op.Out(), rows = Rows(op.out_type()),
                cols = Cols(op.out_type())](At at) {
    return cuda::Softmax(F32(at, x), F32(at, y), rows, cols);
  });
}

CudaKernel LowerSoftmaxGrad(const CudaOp& op) {
  return Plain([y = op.In(0), dy = op.In(1), dx = op.Out(),
                rows = Rows(op.out_type()), cols = Cols(op.out_type())](At at) {
    return cuda::SoftmaxGrad(F32(at, y), F32(at, dy), F32(at, dx), rows, cols);
  });
}

CudaKernel LowerMinusOneHot(const CudaOp& op) {
  return Plain([p = op.In(0), labels = op.In(1), y = op.Out(),
                rows = Rows(op.out_type()), cols = Cols(op.out_type())](At at) {
    return cuda::MinusOneHot(F32(at, p), I32(at, labels), F32(at, y), rows,
                             cols);
  });
}

CudaKernel LowerMseGrad(const CudaOp& op) {
  return Plain([y = op.In(0), t = op.In(1), dy = op.Out(), n = op.n(),
                elements = BatchElements(op.node())](At at) {
    return cuda::MseGrad(F32(at, y), F32(at, t), F32(at, dy), n, elements);
  });
}

CudaKernel LowerNllLoss(const CudaOp& op) {
  const int64_t rows = Rows(op.in_type(0)), cols = Cols(op.in_type(0));
  return {[=, logits = op.In(0), labels = op.In(1), loss = op.Out(),
           batch = BatchRows(op.node())](At at, void* workspace) {
            return cuda::NllLoss(F32(at, logits), I32(at, labels),
                                 F32(at, loss), rows, cols, batch, workspace);
          },
          cuda::LossWorkspaceBytes(rows, cols)};
}

CudaKernel LowerMseLoss(const CudaOp& op) {
  const int64_t n = op.in_type(0).num_elements();
  return {[=, y = op.In(0), t = op.In(1), loss = op.Out(),
           elements = BatchElements(op.node())](At at, void* workspace) {
            return cuda::MseLoss(F32(at, y), F32(at, t), F32(at, loss), n,
                                 elements, workspace);
          },
          cuda::ColumnSumsWorkspaceBytes(n, 1)};
}

CudaKernel LowerCountCorrect(const CudaOp& op) {
  const int64_t rows = Rows(op.in_type(0)), cols = Cols(op.in_type(0));
  return {[=, logits = op.In(0), labels = op.In(1), correct = op.Out()](
              At at, void* workspace) {
            return cuda::CountCorrect(F32(at, logits), I32(at, labels),
                                      F32(at, correct), rows, cols, workspace);
          },
          cuda::LossWorkspaceBytes(rows, cols)};
}

CudaKernel LowerLossGrad(const CudaOp& op) {
  const LossGradOp grad(op.node());
  cuda::LossGradParams params = {};
  params.mse = grad.attrs.loss == Loss::kMse;
  params.rows = Rows(grad.logits.type());
  params.cols = Cols(grad.logits.type());
  params.batch = BatchRows(op.node());
  return {
      [=, logits = op.PlaceOf(grad.logits), labels = op.PlaceOf(grad.labels),
       indices = op.PlaceOf(grad.indices), lr = op.PlaceOf(grad.lr),
       bias = op.PlaceOf(grad.bias), loss = op.Out(LossGradOp::kLoss),
       d = op.Out(LossGradOp::kDlogits), correct = op.Out(LossGradOp::kCorrect),
       db = grad.attrs.bias == BiasGrad::kNone
                ? Place()
                : op.Out(LossGradOp::kBiasGrad)](At at, void* workspace) {
        cuda::LossGradParams p = params;
        p.logits = F32(at, logits);
        p.labels = I32(at, labels);
        p.indices = I32(at, indices);
        p.lr = F32(at, lr);
        p.bias = F32(at, bias);
        p.loss = F32(at, loss);
        p.dlogits = F32(at, d);
        p.correct = F32(at, correct);
        p.db = F32(at, db);
        p.workspace = workspace;
        return cuda::LossGrad(p);
      },
      cuda::LossWorkspaceBytes(params.rows, params.cols)};
}

}  // namespace onestep::gpu
