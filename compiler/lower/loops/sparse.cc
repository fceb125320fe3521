// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/sparse.h"

#include <cstring>

#include "compiler/lower/loops/loop_op.h"
#include "runtime/base/status.h"

namespace onestep::loops {
namespace {

// fn(begin, end) over the rows of a sparse batch, which go in groups.
template <typename Fn>
LoopOp::Call BySparseRows(const LoopOp& op, int64_t rows, int64_t cols, Fn fn) {
  const int64_t groups = RowGrain(cols) / cpu::kSparseRows;
  return [fn, rows, grain = std::max<int64_t>(1, groups) * cpu::kSparseRows,
          threads = op.threads()] { ParallelFor(threads, rows, grain, fn); };
}

}  // namespace

Implementations LowerGatherSparse(const LoopOp& op) {
  return op.Loop([op] {
    const GatherOp gather(op.node());
    const int64_t cols = gather.table.type().dims[1];
    CHECK(Cols(op.out()) == cpu::SparseWidth(cols));
    return BySparseRows(op, Rows(op.out()), cols,
                        [cols, alpha = op.attrs<GatherSparseAttrs>().alpha,
                         table = op.At<uint8_t>(gather.table),
                         indices = op.At<int32_t>(gather.indices),
                         x = op.Out<int32_t>()](int64_t b, int64_t e) {
                          cpu::GatherSparse(*table, *indices, alpha, *x, cols,
                                            b, e);
                        });
  });
}

// Splits as the dense product does, for the same reason.
Implementations LowerSparseMatMul(const LoopOp& op) {
  return op.Loop([op]() -> LoopOp::Call {
    const SparseMatMulOp matmul(op.node());
    const int64_t rows = Rows(op.out()), cols = Cols(op.out());
    cpu::SparseMatMulArgs args = {};
    args.k = Rows(matmul.w);
    args.ldw = args.ldy = cols;
    args.act = matmul.attrs.activation;
    const auto run = [args, x = op.At<int32_t>(matmul.x), w = op.At(matmul.w),
                      bias = op.At(matmul.bias), y = op.Out(),
                      next = op.next_rows()](int64_t row, int64_t row_end,
                                             int64_t col, int64_t col_end) {
      cpu::RowPrefetch prefetch = PrefetchOf(next);
      cpu::SparseMatMulArgs part = args;
      if (next) part.prefetch = &prefetch;
      part.x = *x;
      part.w = *w + col;
      part.y = *y + col;
      part.n = col_end - col;
      part.bias = bias == nullptr ? nullptr : *bias + col;
      cpu::SparseMatMul(part, row, row_end);
    };
    if (rows < cols && cols >= 2 * kLineFloats * op.threads()) {
      return op.ByCols(
          matmul.x.type().num_elements(), cols,
          [run, rows](int64_t b, int64_t e) { run(0, rows, b, e); });
    }
    return BySparseRows(op, rows, cols, [run, cols](int64_t b, int64_t e) {
      run(b, e, 0, cols);
    });
  });
}

// By columns: each needs the whole batch, and no two touch the same sums.
Implementations LowerSparseOuter(const LoopOp& op) {
  return op.Loop([op] {
    const SparseOuterOp outer(op.node());
    cpu::SparseOuterArgs args = {};
    args.rows = Rows(outer.x);
    args.k = outer.attrs.rows;
    args.lddz = args.lddw = Cols(op.out());
    return op.ByCols(outer.x.type().num_elements(), args.lddw,
                     [args, x = op.At<int32_t>(outer.x), dz = op.At(outer.dz),
                      c = op.At(outer.c), dw = op.Out(),
                      next = op.next_rows()](int64_t begin, int64_t end) {
                       cpu::RowPrefetch prefetch = PrefetchOf(next);
                       cpu::SparseOuterArgs part = args;
                       if (next) part.prefetch = &prefetch;
                       part.x = *x;
                       part.dz = *dz + begin;
                       part.dw = *dw + begin;
                       part.n = end - begin;
                       const size_t bytes = part.n * sizeof(float);
                       const bool in_place = c != nullptr && *c == *dw;
                       for (int64_t r = 0; r < part.k && !in_place; ++r) {
                         float* row = part.dw + r * part.lddw;
                         if (c == nullptr) {
                           std::memset(row, 0, bytes);
                         } else {
                           std::memcpy(row, *c + begin + r * part.lddw, bytes);
                         }
                       }
                       cpu::SparseOuter(part);
                     });
  });
}

}  // namespace onestep::loops
