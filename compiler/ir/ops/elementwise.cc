// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/elementwise.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"

namespace onestep {
namespace {

// ---- cast -------------------------------------------------------------------

absl::StatusOr<Types> InferCast(const Types& in, const Attrs& attrs) {
  const DType to = std::get<CastAttrs>(attrs).to;
  if (to != DType::kF32) {
    return Wrong(OpKind::kCast, "to=f32", absl::StrCat("to=", DTypeName(to)));
  }
  return Types{F32(in[0].dims)};
}

// ---- scale, mul_scalar ------------------------------------------------------

absl::StatusOr<Types> InferScale(const Types& in, const Attrs&) {
  return InferUnary("scale", in);
}

// y = alpha x:  dx = alpha dy
absl::StatusOr<Values> GradScale(const GradContext& ctx) {
  return Values{
      ctx.graph.Add(OpKind::kScale, {ctx.dys[0]}, ctx.node.as<ScaleAttrs>())};
}

absl::StatusOr<Types> InferMulScalar(const Types& in, const Attrs&) {
  if (in[0].dtype != DType::kF32 || in[1] != F32({})) {
    return Wrong(OpKind::kMulScalar, "x f32, s f32[]", in);
  }
  return Types{in[0]};
}

// y = alpha s x:  dx = alpha s dy. The scalar s is a learning rate or a scale
// of the loss, not learned.
absl::StatusOr<Values> GradMulScalar(const GradContext& ctx) {
  if (ctx.wanted[1]) return NotDifferentiable(ctx, "the scalar");
  return Values{ctx.graph.Add(OpKind::kMulScalar, {ctx.dys[0], ctx.operand(1)},
                              ctx.node.as<ScaleAttrs>()),
                Value()};
}

Strategies PartitionMulScalar(const Node& node) {
  Strategies list = SplitAlikeOrPartial(node);
  for (Strategy& strategy : list) strategy.operands[1] = R;
  return list;
}

// ---- add, mul ---------------------------------------------------------------

absl::StatusOr<Types> InferAdd(const Types& in, const Attrs&) {
  return InferBinary("add", "a, b", in);
}

// y = a + b:  da = db = dy
absl::StatusOr<Values> GradAdd(const GradContext& ctx) {
  return Values{ctx.dys[0], ctx.dys[0]};
}

absl::StatusOr<Types> InferMul(const Types& in, const Attrs&) {
  return InferBinary("mul", "a, b", in);
}

// y = a b:  da = dy b, db = dy a
absl::StatusOr<Values> GradMul(const GradContext& ctx) {
  const auto times_dy = [&ctx](Value x) {
    const Value dy = ctx.dys[0];
    return IsConstantOne(dy) ? x : ctx.graph.Add(OpKind::kMul, {dy, x});
  };
  Values dxs(2);
  if (ctx.wanted[0]) dxs[0] = times_dy(ctx.operand(1));
  if (ctx.wanted[1]) dxs[1] = times_dy(ctx.operand(0));
  return dxs;
}

// Linear in each operand alone.
Strategies PartitionMul(const Node& node) {
  Strategies list = SplitAlike(node);
  list.push_back({{P, R}, {P}});
  list.push_back({{R, P}, {P}});
  return list;
}

// ---- add_bias ---------------------------------------------------------------

absl::StatusOr<Types> InferAddBias(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0]) || in[1] != F32({in[0].dims[1]})) {
    return Wrong(OpKind::kAddBias, "x f32[B,C], b f32[C]", in);
  }
  return Types{in[0]};
}

// y[r] = x[r] + b:  dx = dy, db = sum over r of dy[r]
absl::StatusOr<Values> GradAddBias(const GradContext& ctx) {
  Values dxs = {ctx.dys[0], Value()};
  if (ctx.wanted[1]) {
    dxs[1] = ctx.graph.Add(OpKind::kReduceRows, {ctx.dys[0]});
  }
  return dxs;
}

Strategies PartitionAddBias(const Node& node) {
  return {AllAt(node, R), {{S0, R}, {S0}}, {{S1, S0}, {S1}}, AllAt(node, P)};
}

// ---- reduce_rows, broadcast_rows --------------------------------------------

absl::StatusOr<Types> InferReduceRows(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0])) return Wrong(OpKind::kReduceRows, "x f32[B,C]", in);
  return Types{F32({in[0].dims[1]})};
}

// y = sum over r of x[r]:  dx[r] = dy
absl::StatusOr<Values> GradReduceRows(const GradContext& ctx) {
  const int64_t rows = ctx.operand(0).type().dims[0];
  return Values{
      ctx.graph.Add(OpKind::kBroadcastRows, {ctx.dys[0]}, RowsAttrs{rows})};
}

Strategies PartitionReduceRows(const Node& node) {
  return {AllAt(node, R), {{S0}, {P}}, {{S1}, {S0}}, AllAt(node, P)};
}

absl::StatusOr<Types> InferBroadcastRows(const Types& in, const Attrs& attrs) {
  const int64_t rows = std::get<RowsAttrs>(attrs).rows;
  if (rows < 1) {
    return Wrong(OpKind::kBroadcastRows, "rows >= 1",
                 absl::StrCat("rows=", rows));
  }
  if (!IsVector(in[0], DType::kF32)) {
    return Wrong(OpKind::kBroadcastRows, "x f32[C]", in);
  }
  return Types{F32({rows, in[0].dims[0]})};
}

// y[r] = x:  dx = sum over r of dy[r]
absl::StatusOr<Values> GradBroadcastRows(const GradContext& ctx) {
  return Values{ctx.graph.Add(OpKind::kReduceRows, {ctx.dys[0]})};
}

Strategies PartitionBroadcastRows(const Node& node) {
  return {AllAt(node, R), {{R}, {S0}}, {{S0}, {S1}}, AllAt(node, P)};
}

}  // namespace

const OpRules kCastRules = {
    .infer = InferCast,
    .grad = NotDifferentiated,
    .cost = NoFlops,
    .batch = AllPerModel,
    .partition = SplitAlike,
    .alias = NeverInPlace,
};

const OpRules kScaleRules = {
    .infer = InferScale,
    .grad = GradScale,
    .cost = FlopsPerElement<1>,
    .batch = AllPerModel,
    .partition = SplitAlikeOrPartial,
    .alias = ElementwiseInPlace,
};

// alpha s is one number.
const OpRules kMulScalarRules = {
    .infer = InferMulScalar,
    .grad = GradMulScalar,
    .cost = FlopsPerElement<1>,
    .batch = AllPerModel,
    .partition = PartitionMulScalar,
    .alias = ElementwiseInPlace,
};

const OpRules kAddRules = {
    .infer = InferAdd,
    .grad = GradAdd,
    .cost = FlopsPerElement<1>,
    .batch = AllPerModel,
    .partition = SplitAlikeOrPartial,
    .alias = ElementwiseInPlace,
};

const OpRules kMulRules = {
    .infer = InferMul,
    .grad = GradMul,
    .cost = FlopsPerElement<1>,
    .batch = AllPerModel,
    .partition = PartitionMul,
    .alias = ElementwiseInPlace,
};

const OpRules kAddBiasRules = {
    .infer = InferAddBias,
    .grad = GradAddBias,
    .cost = FlopsPerElement<1>,
    .batch = AllPerModel,
    .partition = PartitionAddBias,
    .alias = ElementwiseInPlace,
};

const OpRules kReduceRowsRules = {
    .infer = InferReduceRows,
    .grad = GradReduceRows,
    .cost = FlopsPerElement<1>,
    .batch = AllPerModel,
    .partition = PartitionReduceRows,
    .alias = NeverInPlace,
};

const OpRules kBroadcastRowsRules = {
    .infer = InferBroadcastRows,
    .grad = GradBroadcastRows,
    .cost = NoFlops,
    .batch = AllPerModel,
    .partition = PartitionBroadcastRows,
    .alias = NeverInPlace,
};

}  // namespace onestep
