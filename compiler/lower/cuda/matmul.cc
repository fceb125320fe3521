// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_op.h"

namespace onestep::gpu {

CudaKernel LowerMatMul(const CudaOp& op) {
  const MatMulOp matmul(op.node());
  cuda::MatMulParams params = {};
  params.m = matmul.m;
  params.n = matmul.n;
  params.k = matmul.k;
  params.trans_a = matmul.attrs.trans_a;
  params.trans_b = matmul.attrs.trans_b;
  params.act = matmul.attrs.activation;
  return Plain([=, a = op.PlaceOf(matmul.a), b = op.PlaceOf(matmul.b),
                y = op.Out(), bias = op.PlaceOf(matmul.bias),
                c = op.PlaceOf(matmul.c)](At at) {
    cuda::MatMulParams p = params;
    p.a = F32(at, a);
    p.b = F32(at, b);
    p.bias = F32(at, bias);
    p.c = F32(at, c);
    p.y = F32(at, y);
    return cuda::MatMul(p);
  });
}

}  // namespace onestep::gpu
