// SPDX-License-Identifier: Apache-2.0
// Products of batches of rows of which only the nonzeros are kept.
#ifndef ONESTEP_COMPILER_IR_OPS_SPARSE_H_
#define ONESTEP_COMPILER_IR_OPS_SPARSE_H_

#include <cstdint>

#include "compiler/ir/fields.h"
#include "compiler/ir/ops/activation.h"
#include "compiler/ir/value.h"

namespace onestep {

struct GatherSparseAttrs {
  float alpha = 1;
  int64_t nonzeros = 0;  // of the table, for the cost; 0: not known
  ONESTEP_FIELDS(GatherSparseAttrs, alpha, nonzeros);
};

struct SparseMatMulAttrs {
  bool bias = false;
  Activation activation = Activation::kNone;
  ONESTEP_FIELDS(SparseMatMulAttrs, bias, activation);
};

struct SparseOuterAttrs {
  int64_t rows = 0;
  bool accumulate = false;
  ONESTEP_FIELDS(SparseOuterAttrs, rows, accumulate);
};

// y = act(x w + bias).
struct SparseMatMulOp {
  explicit SparseMatMulOp(const Node& node);

  SparseMatMulAttrs attrs;
  Value x, w;
  Value bias;  // where attrs.bias
};

// dw = x^T dz, or c + x^T dz.
struct SparseOuterOp {
  explicit SparseOuterOp(const Node& node);

  SparseOuterAttrs attrs;
  Value x, dz;
  Value c;  // where attrs.accumulate
};

// The width of a sparse batch of rows of `cols` values; kernels/cpu/sparse.h
// says what for.
constexpr int64_t SparseWidth(int64_t cols) {
  return 16 + (cols + 2) / 3 * 2 + 16;
}

// Rows of a sparse batch have at most this many values.
inline constexpr int64_t kMaxSparseCols = (int64_t{1} << 23) - 1;

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_SPARSE_H_
