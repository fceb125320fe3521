// SPDX-License-Identifier: Apache-2.0
// Dense products of matrices.
#ifndef ONESTEP_COMPILER_IR_OPS_MATMUL_H_
#define ONESTEP_COMPILER_IR_OPS_MATMUL_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/fields.h"
#include "compiler/ir/ops/activation.h"
#include "compiler/ir/value.h"

namespace onestep {

struct MatMulAttrs {
  bool trans_a = false;
  bool trans_b = false;
  bool bias = false;
  bool accumulate = false;
  Activation activation = Activation::kNone;
  ONESTEP_FIELDS(MatMulAttrs, trans_a, trans_b, bias, accumulate, activation);

  bool has_epilogue() const {
    return bias || accumulate || activation != Activation::kNone;
  }
};

struct BlockMatMulAttrs {
  int64_t blocks = 1;
  bool trans_a = false;
  bool trans_b = false;
  ONESTEP_FIELDS(BlockMatMulAttrs, blocks, trans_a, trans_b);
};

// y = act(op(a) op(b) + bias), or c + op(a) op(b).
struct MatMulOp {
  explicit MatMulOp(const Node& node);
  std::vector<Value> Operands() const;

  MatMulAttrs attrs;
  Value a, b;
  Value bias;       // where attrs.bias
  Value c;          // where attrs.accumulate
  int64_t m, n, k;  // of one model
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_MATMUL_H_
