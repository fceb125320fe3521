// SPDX-License-Identifier: Apache-2.0
// Declares the rules of every row of ops.def; see op.h for their contracts.
#ifndef ONESTEP_COMPILER_IR_OP_RULES_H_
#define ONESTEP_COMPILER_IR_OP_RULES_H_

#include "compiler/ir/graph.h"
#include "compiler/ir/op.h"

namespace onestep {

#define OP(kind, ...)                                                        \
  absl::StatusOr<std::vector<TensorType>> Infer##kind(                       \
      const std::vector<TensorType>& operands, const Attrs& attrs);          \
  absl::StatusOr<std::vector<Value>> Grad##kind(const GradContext& context); \
  OpCost Cost##kind(const Node& node);                                       \
  std::vector<ModelAxis> Batch##kind(int operands, const Attrs& attrs);      \
  std::vector<Strategy> Partition##kind(const Node& node);
#include "compiler/ir/ops.def"
#undef OP

// The width of a sparse batch of rows of `cols` values; kernels/cpu/sparse.h
// says what for.
constexpr int64_t SparseWidth(int64_t cols) {
  return 16 + (cols + 2) / 3 * 2 + 16;
}

// Rows of a sparse batch have at most this many values.
inline constexpr int64_t kMaxSparseCols = (int64_t{1} << 23) - 1;

// Unimplemented "<op>: has no gradient": the rule of leaves and kNoGrad ops.
absl::StatusOr<std::vector<Value>> GradRefused(const GradContext& context);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OP_RULES_H_
