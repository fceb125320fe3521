// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/rules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onestep {

TensorType I32(std::vector<int64_t> dims) {
  return TensorType{DType::kI32, std::move(dims)};
}

bool IsVector(const TensorType& type, DType dtype) {
  return type.dtype == dtype && type.rank() == 1;
}

bool IsMatrix(const TensorType& type, DType dtype) {
  return type.dtype == dtype && type.rank() == 2;
}

absl::Status Wrong(const std::string& op, const std::string& want,
                   const std::string& got) {
  return absl::InvalidArgumentError(
      absl::StrCat(op, ": want ", want, ", got ", got));
}

absl::Status Wrong(OpKind kind, const std::string& want,
                   const std::string& got) {
  return Wrong(GetOpDef(kind).name, want, got);
}

namespace {
std::string Join(const Types& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, const TensorType& t) {
    out->append(t.ToString());
  });
}
}  // namespace

absl::Status Wrong(OpKind kind, const std::string& want, const Types& got) {
  return Wrong(kind, want, Join(got));
}

absl::StatusOr<Types> InferUnary(const std::string& op, const Types& in) {
  if (in[0].dtype != DType::kF32) return Wrong(op, "x f32", Join(in));
  return Types{in[0]};
}

absl::StatusOr<Types> InferBinary(const std::string& op,
                                  const std::string& want, const Types& in) {
  if (in[0].dtype != DType::kF32 || in[0] != in[1]) {
    return Wrong(op, absl::StrCat(want, " f32 of one shape"), Join(in));
  }
  return Types{in[0]};
}

absl::Status CheckLabels(OpKind kind, const std::string& name,
                         const Types& in) {
  if (!IsMatrix(in[0]) || in[1] != I32({in[0].dims[0]})) {
    return Wrong(kind, absl::StrCat(name, " f32[B,C], labels i32[B]"), in);
  }
  return absl::OkStatus();
}

absl::StatusOr<Values> NotDifferentiated(const GradContext& context) {
  return absl::UnimplementedError(
      absl::StrCat(context.node.op(), ": has no gradient"));
}

absl::Status NotDifferentiable(const GradContext& context,
                               const std::string& what) {
  return absl::UnimplementedError(
      absl::StrCat(context.node.op(), ": gradient of ", what));
}

Value TimesScalar(const GradContext& context, Value x) {
  const Value dy = context.dys[0];
  if (IsConstantOne(dy)) return x;
  return context.graph.Add(OpKind::kMulScalar, {x, dy});
}

double Elements(const TensorType& type) {
  return static_cast<double>(type.num_elements());
}

double Bytes(const TensorType& type) {
  return static_cast<double>(type.bytes());
}

double ResultBytes(const Node& node) {
  double bytes = 0;
  for (const TensorType& type : node.types) bytes += Bytes(type);
  return bytes;
}

double AllBytes(const Node& node) {
  double bytes = ResultBytes(node);
  for (const Value& operand : node.operands) bytes += Bytes(operand.type());
  return bytes;
}

OpCost PerElement(const Node& node, double flops) {
  return {flops * Elements(node.operands[0].type()), AllBytes(node)};
}

OpCost NoFlops(const Node& node) { return {0, AllBytes(node)}; }

ModelAxes AllPerModel(int operands, const Attrs&) {
  return ModelAxes(operands, ModelAxis::kPerModel);
}

ModelAxes AllShared(int operands, const Attrs&) {
  return ModelAxes(operands, ModelAxis::kShared);
}

Strategy AllAt(const Node& node, Placement placement) {
  return {std::vector(node.operands.size(), placement),
          std::vector(node.types.size(), placement)};
}

Strategies OnlyReplicated(const Node& node) { return {AllAt(node, R)}; }

Strategies SplitAlike(const Node& node) {
  Strategies list = {AllAt(node, R)};
  for (int axis = 0; axis < node.types[0].rank(); ++axis) {
    list.push_back(AllAt(node, Placement::Split(axis)));
  }
  return list;
}

Strategies SplitAlikeOrPartial(const Node& node) {
  Strategies list = SplitAlike(node);
  list.push_back(AllAt(node, P));
  return list;
}

Strategies ByRows(const Node& node) {
  return {AllAt(node, R), AllAt(node, S0)};
}

Strategies SumOfRows(const Node& node) {
  return {AllAt(node, R), {{S0, S0}, {P}}};
}

Strategies ByIndicesOrColumns(const Node& node) {
  Strategies list = {AllAt(node, R), {{R, S0}, {S0}}};
  if (node.types[0].rank() == 2) list.push_back({{S1, R}, {S1}});
  if (node.types[0].dtype == DType::kF32 &&
      node.operands[0].type().dtype == DType::kF32) {
    list.push_back({{P, R}, {P}});
  }
  return list;
}

bool NeverInPlace(const Node&, int, int) { return false; }

bool ElementwiseInPlace(const Node&, int result, int) { return result == 0; }

std::optional<RowLookup> LooksUpRows(const Node&) { return RowLookup{0, 1}; }

}  // namespace onestep
