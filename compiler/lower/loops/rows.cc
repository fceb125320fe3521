// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/rows.h"

#include <cstring>

#include "compiler/lower/loops/loop_op.h"

namespace onestep::loops {

Implementations LowerGatherRows(const LoopOp& op) {
  return op.Loop([op] {
    const GatherOp gather(op.node());
    const TensorType& type = gather.table.type();
    const int64_t row_bytes = type.bytes() / type.dims[0];
    return op.ByRows(gather.indices.type().dims[0], row_bytes / 4,
                     [row_bytes, table = op.At<uint8_t>(gather.table),
                      indices = op.At<int32_t>(gather.indices),
                      y = op.Out<char>()](int64_t b, int64_t e) {
                       cpu::GatherRows(*table, *indices, *y, row_bytes, b, e);
                     });
  });
}

Implementations LowerGatherConvert(const LoopOp& op) {
  return op.Loop([op] {
    const GatherOp gather(op.node());
    return op.ByRows(
        op.out(), [alpha = op.attrs<ScaleAttrs>().alpha,
                   table = op.At<uint8_t>(gather.table),
                   indices = op.At<int32_t>(gather.indices), y = op.Out(),
                   cols = Cols(op.out())](int64_t b, int64_t e) {
          cpu::GatherConvert(*table, *indices, alpha, *y, cols, b, e);
        });
  });
}

// By columns: rows may be named more than once.
Implementations LowerScatterAdd(const LoopOp& op) {
  return op.Loop([op] {
    const ScatterAddOp scatter(op.node());
    const TensorType& type = scatter.table.type();
    const int64_t rows = scatter.indices.type().dims[0];
    const int64_t cols = type.num_elements() / type.dims[0];
    return [loop = op.ByCols(
                rows, cols,
                [rows, cols, indices = op.At<int32_t>(scatter.indices),
                 x = op.At(scatter.rows),
                 y = op.Out()](int64_t begin, int64_t end) {
                  cpu::ScatterAdd(*indices, *x, *y, rows, cols, begin, end);
                }),
            bytes = type.bytes(), table = op.At(scatter.table), y = op.Out()] {
      if (*y != *table) std::memcpy(*y, *table, bytes);
      loop();
    };
  });
}

Implementations LowerOneHot(const LoopOp& op) {
  return op.Loop([op] {
    return op.ByRows(op.out(), [labels = op.In<int32_t>(0), y = op.Out(),
                                cols = Cols(op.out())](int64_t b, int64_t e) {
      cpu::OneHot(*labels + b, *y + b * cols, e - b, cols);
    });
  });
}

}  // namespace onestep::loops
