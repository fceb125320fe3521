// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_op.h"

namespace onestep::gpu {

CudaKernel LowerGatherRows(const CudaOp& op) {
  const GatherOp gather(op.node());
  const TensorType& type = gather.table.type();
  return Plain([table = op.PlaceOf(gather.table),
                indices = op.PlaceOf(gather.indices), y = op.Out(),
                rows = gather.indices.type().dims[0],
                row_bytes = type.bytes() / type.dims[0]](At at) {
    return cuda::GatherRows(at.at(table.slot), I32(at, indices), at.at(y.slot),
                            rows, row_bytes);
  });
}

CudaKernel LowerGatherConvert(const CudaOp& op) {
  const GatherOp gather(op.node());
  return Plain([table = op.PlaceOf(gather.table),
                indices = op.PlaceOf(gather.indices), y = op.Out(),
                alpha = op.attrs<ScaleAttrs>().alpha,
                rows = Rows(op.out_type()), cols = Cols(op.out_type())](At at) {
    return cuda::GatherConvert(Of<const uint8_t>(at, table).first,
                               I32(at, indices), alpha, F32(at, y).first, rows,
                               cols);
  });
}

CudaKernel LowerOneHot(const CudaOp& op) {
  return Plain([labels = op.In(0), y = op.Out(), rows = Rows(op.out_type()),
                cols = Cols(op.out_type())](At at) {
    return cuda::OneHot(I32(at, labels), F32(at, y).first, rows, cols);
  });
}

}  // namespace onestep::gpu
