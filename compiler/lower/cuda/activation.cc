// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_op.h"

namespace onestep {
namespace gpu {

CudaKernel LowerActivation(const CudaOp& op) {
  return Plain([x = op.In(0), y = op.Out(), n = op.n(),
                act = op.attrs<ActivationAttrs>().activation](At at) {
    return cuda::Activate(act, F32(at, x), F32(at, y), n);
  });
}

CudaKernel LowerActivationGrad(const CudaOp& op) {
  const ActivationGradOp grad(op.node());
  const Activation act = grad.attrs.activation;
  const Place saved = op.PlaceOf(grad.saved), dy = op.PlaceOf(grad.dy);
  const Place dx = op.Out(ActivationGradOp::kDx);
  if (grad.attrs.bias == BiasGrad::kNone) {
    return Plain([=, n = op.n()](At at) {
      return cuda::ActivateGrad(act, F32(at, saved), F32(at, dy), F32(at, dx),
                                n);
    });
  }
  const int64_t rows = Rows(op.out_type()), cols = Cols(op.out_type());
  return {[=, bias = op.PlaceOf(grad.bias),
           db = op.Out(ActivationGradOp::kBiasGrad)](At at, void* workspace) {
            return cuda::ActivationGrad(act, F32(at, saved), F32(at, dy),
                                        F32(at, bias), F32(at, dx), F32(at, db),
                                        rows, cols, workspace);
          },
          cuda::ColumnSumsWorkspaceBytes(rows, cols)};
}

}  // namespace gpu

CudaKernel ActivateKernel(Activation activation, int slot, int64_t n) {
  return gpu::Plain([=, act = activation](const CudaBindings& at) {
    float* const y = static_cast<float*>(at.at(slot));
    return cuda::Activate(act, y, y, n);
  });
}

}  // namespace onestep
