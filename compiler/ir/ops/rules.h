// SPDX-License-Identifier: Apache-2.0
// What the rules of the op families share. ops.def declares k<Kind>Rules of
// each op; a family defines those of its ops.
#ifndef ONESTEP_COMPILER_IR_OPS_RULES_H_
#define ONESTEP_COMPILER_IR_OPS_RULES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/op.h"

namespace onestep {

#define OP(kind, ...) extern const OpRules k##kind##Rules;
#include "compiler/ir/ops.def"
#undef OP

using Types = std::vector<TensorType>;
using Values = std::vector<Value>;
using ModelAxes = std::vector<ModelAxis>;
using Strategies = std::vector<Strategy>;

// ---- shapes -----------------------------------------------------------------

TensorType I32(std::vector<int64_t> dims);
bool IsVector(const TensorType& type, DType dtype);
bool IsMatrix(const TensorType& type, DType dtype = DType::kF32);

// InvalidArgument "<op>: want ..., got ...".
absl::Status Wrong(const std::string& op, const std::string& want,
                   const std::string& got);
absl::Status Wrong(OpKind kind, const std::string& want,
                   const std::string& got);
absl::Status Wrong(OpKind kind, const std::string& want, const Types& got);

// One f32 tensor, of any shape, gives its own type.
absl::StatusOr<Types> InferUnary(const std::string& op, const Types& in);
// Two f32 tensors of one shape, whatever it is, give that.
absl::StatusOr<Types> InferBinary(const std::string& op,
                                  const std::string& want, const Types& in);
// One value per row of `name` f32[B,C].
absl::Status CheckLabels(OpKind kind, const std::string& name, const Types& in);

// ---- gradients --------------------------------------------------------------

// Unimplemented "<op>: has no gradient".
absl::StatusOr<Values> NotDifferentiated(const GradContext& context);
// Unimplemented "<op>: gradient of <what>".
absl::Status NotDifferentiable(const GradContext& context,
                               const std::string& what);
// dx = ds x, where ds is the gradient of the scalar that the op makes.
Value TimesScalar(const GradContext& context, Value x);

// ---- costs ------------------------------------------------------------------

double Elements(const TensorType& type);
double Bytes(const TensorType& type);
double ResultBytes(const Node& node);
// Every operand read once, every result written once.
double AllBytes(const Node& node);
// `flops` for each element of the first operand, AllBytes.
OpCost PerElement(const Node& node, double flops);
template <int kFlops>
OpCost FlopsPerElement(const Node& node) {
  return PerElement(node, kFlops);
}
OpCost NoFlops(const Node& node);  // AllBytes

// ---- many models ------------------------------------------------------------

ModelAxes AllPerModel(int operands, const Attrs& attrs);
ModelAxes AllShared(int operands, const Attrs& attrs);
// All per model but operand kOperand.
template <int kOperand, ModelAxis kAxis>
ModelAxes AllPerModelBut(int operands, const Attrs& attrs) {
  ModelAxes axes = AllPerModel(operands, attrs);
  axes[kOperand] = kAxis;
  return axes;
}

// ---- partition --------------------------------------------------------------
// R is replicated, S0 and S1 are split by rows and by columns, and P is
// partial: what an op is linear in may stay a sum.

inline constexpr Placement R;
inline constexpr Placement S0{Placement::kSplit, 0};
inline constexpr Placement S1{Placement::kSplit, 1};
inline constexpr Placement P{Placement::kPartial, 0};

// Every operand and result in the same place.
Strategy AllAt(const Node& node, Placement placement);
// Replicated: not worth sharing out.
Strategies OnlyReplicated(const Node& node);
// Replicated, or all split on the same axis: for leaves, and for ops whose
// operands and results are of one shape and meet element by element.
Strategies SplitAlike(const Node& node);
// Likewise, and linear in all operands together.
Strategies SplitAlikeOrPartial(const Node& node);
// Rows of the batch stay apart.
Strategies ByRows(const Node& node);
// Rows are split and each worker has a part of the sum over them.
Strategies SumOfRows(const Node& node);
// A gather: the batch by its indices, or the columns of the table; linear in a
// table of floats.
Strategies ByIndicesOrColumns(const Node& node);

// ---- aliases ----------------------------------------------------------------

bool NeverInPlace(const Node& node, int result, int operand);
// Result 0 over any operand: for ops that work element by element or row by
// row, each read before it is written.
bool ElementwiseInPlace(const Node& node, int result, int operand);

// ---- gathers ----------------------------------------------------------------

// Operand 0 is the table, 1 its indices.
std::optional<RowLookup> LooksUpRows(const Node& node);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_RULES_H_
