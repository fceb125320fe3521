// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_op.h"
#include "runtime/base/status.h"

namespace onestep {
namespace gpu {

CudaKernel LowerCast(const CudaOp& op) {
  const Place x = op.In(0), y = op.Out();
  switch (op.in_type(0).dtype) {
    case DType::kU8:
      return Plain([=, n = op.n()](At at) {
        return cuda::CastU8(Of<const uint8_t>(at, x), F32(at, y), n);
      });
    case DType::kI32:
      return Plain([=, n = op.n()](At at) {
        return cuda::CastI32(Of<const int32_t>(at, x), F32(at, y), n);
      });
    case DType::kF32:
      return Plain([=, n = op.n()](At at) {
        return cuda::Scale(F32(at, x), 1, F32(at, y), n);
      });
  }
  CHECK(false);
}

CudaKernel LowerScale(const CudaOp& op) {
  return Plain([x = op.In(0), y = op.Out(), n = op.n(),
                alpha = op.attrs<ScaleAttrs>().alpha](At at) {
    return cuda::Scale(F32(at, x), alpha, F32(at, y), n);
  });
}

CudaKernel LowerMulScalar(const CudaOp& op) {
  return Plain([x = op.In(0), s = op.In(1), y = op.Out(), n = op.n(),
                alpha = op.attrs<ScaleAttrs>().alpha](At at) {
    return cuda::MulScalar(F32(at, x), F32(at, s), alpha, F32(at, y), n);
  });
}

CudaKernel LowerAdd(const CudaOp& op) {
  return Plain([a = op.In(0), b = op.In(1), y = op.Out(), n = op.n()](At at) {
    return cuda::Add(F32(at, a), F32(at, b), F32(at, y), n);
  });
}

CudaKernel LowerMul(const CudaOp& op) {
  return Plain([a = op.In(0), b = op.In(1), y = op.Out(), n = op.n()](At at) {
    return cuda::Mul(F32(at, a), F32(at, b), F32(at, y), n);
  });
}

CudaKernel LowerAddBias(const CudaOp& op) {
  return Plain([x = op.In(0), b = op.In(1), y = op.Out(),
                rows = Rows(op.out_type()), cols = Cols(op.out_type())](At at) {
    return cuda::AddBias(F32(at, x), F32(at, b), F32(at, y), rows, cols);
  });
}

CudaKernel LowerReduceRows(const CudaOp& op) {
  const int64_t rows = Rows(op.in_type(0)), cols = Cols(op.in_type(0));
  return {[=, x = op.In(0), y = op.Out()](At at, void* workspace) {
            return cuda::ReduceRows(F32(at, x), F32(at, y), rows, cols,
                                    workspace);
          },
          cuda::ColumnSumsWorkspaceBytes(rows, cols)};
}

CudaKernel LowerBroadcastRows(const CudaOp& op) {
  return Plain([x = op.In(0), y = op.Out(), rows = Rows(op.out_type()),
                cols = Cols(op.out_type())](At at) {
    return cuda::BroadcastRows(F32(at, x), F32(at, y), rows, cols);
  });
}

}  // namespace gpu

CudaKernel AddKernelOf(int a, int b, int y, int64_t n) {
  return gpu::Plain([=](const CudaBindings& at) {
    return cuda::Add(static_cast<const float*>(at.at(a)),
                     static_cast<const float*>(at.at(b)),
                     static_cast<float*>(at.at(y)), n);
  });
}

}  // namespace onestep
