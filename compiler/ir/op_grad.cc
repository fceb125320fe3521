// SPDX-License-Identifier: Apache-2.0
// Gradient rules: from the gradients dy of a node's results, those of its
// operands. A rule makes nodes only for the operands whose gradient is wanted
// and gives no value for the others.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/op_rules.h"

namespace onestep {
namespace {

using Values = std::vector<Value>;

// dx = ds x, where ds is the gradient of the scalar that was made.
Value TimesScalar(const GradContext& ctx, Value x) {
  const Value dy = ctx.dys[0];
  if (IsConstantOne(dy)) return x;
  return ctx.graph.Add(OpKind::kMulScalar, {x, dy});
}

// dx = dy x, element by element.
Value TimesDy(const GradContext& ctx, Value x) {
  const Value dy = ctx.dys[0];
  if (IsConstantOne(dy)) return x;
  return ctx.graph.Add(OpKind::kMul, {dy, x});
}

// dx = dy act'(x), from act's result or, where that does not do, its operand.
Values GradOfActivation(const GradContext& ctx) {
  const Activation activation = ActivationOf(ctx.node.kind);
  const Value saved = ActivationGradReadsOperand(activation)
                          ? ctx.operand(0)
                          : ctx.node.result();
  return {ctx.graph.Add(ActivationGradOp(activation), {saved, ctx.dys[0]})};
}

absl::Status NotDifferentiable(const GradContext& ctx,
                               const std::string& what) {
  return absl::UnimplementedError(
      absl::StrCat(ctx.node.def().name, ": gradient of ", what));
}

// Y = A B:  dA = dY Bt, dB = At dY. Where the graph holds A transposed, its
// gradient is (dY Bt)t = B dYt; the same for B. `attrs` are those of a plain
// product.
template <typename Attrs>
Values GradOfProduct(const GradContext& ctx, const Attrs& attrs) {
  const Value a = ctx.operand(0), b = ctx.operand(1), dy = ctx.dys[0];
  auto matmul = [&](Value x, bool trans_x, Value y, bool trans_y) {
    Attrs product = attrs;
    product.trans_a = trans_x;
    product.trans_b = trans_y;
    return ctx.graph.Add(ctx.node.kind, {x, y}, product);
  };
  Values dxs(2);
  if (ctx.wanted[0]) {
    dxs[0] = attrs.trans_a ? matmul(b, attrs.trans_b, dy, true)
                           : matmul(dy, false, b, !attrs.trans_b);
  }
  if (ctx.wanted[1]) {
    dxs[1] = attrs.trans_b ? matmul(dy, true, a, attrs.trans_a)
                           : matmul(a, !attrs.trans_a, dy, false);
  }
  return dxs;
}

}  // namespace

absl::StatusOr<Values> GradRefused(const GradContext& ctx) {
  return absl::UnimplementedError(
      absl::StrCat(ctx.node.def().name, ": has no gradient"));
}

absl::StatusOr<Values> GradConstant(const GradContext&) { return Values(); }

// y[r] = table[i[r]]:  dtable[v] = sum of the dy[r] with i[r] = v
absl::StatusOr<Values> GradGatherRows(const GradContext& ctx) {
  const TensorType& table = ctx.operand(0).type();
  if (table.dtype != DType::kF32) {
    return NotDifferentiable(ctx, absl::StrCat("a table ", table.ToString()));
  }
  const Value zero = ctx.graph.AddConstant(0, table);
  return Values{
      ctx.graph.Add(OpKind::kScatterAdd, {zero, ctx.operand(1), ctx.dys[0]}),
      Value()};
}

// y = table + rows at i:  dtable = dy, drows[r] = dy[i[r]]
absl::StatusOr<Values> GradScatterAdd(const GradContext& ctx) {
  Values dxs = {ctx.dys[0], Value(), Value()};
  if (ctx.wanted[2]) {
    dxs[2] = ctx.graph.Add(OpKind::kGatherRows, {ctx.dys[0], ctx.operand(1)});
  }
  return dxs;
}

// y = alpha x:  dx = alpha dy
absl::StatusOr<Values> GradScale(const GradContext& ctx) {
  return Values{
      ctx.graph.Add(OpKind::kScale, {ctx.dys[0]}, ctx.node.as<ScaleAttrs>())};
}

// y = alpha s x:  dx = alpha s dy. The scalar s is a learning rate or a scale
// of the loss, not learned.
absl::StatusOr<Values> GradMulScalar(const GradContext& ctx) {
  if (ctx.wanted[1]) return NotDifferentiable(ctx, "the scalar");
  return Values{ctx.graph.Add(OpKind::kMulScalar, {ctx.dys[0], ctx.operand(1)},
                              ctx.node.as<ScaleAttrs>()),
                Value()};
}

// y = a + b:  da = db = dy
absl::StatusOr<Values> GradAdd(const GradContext& ctx) {
  return Values{ctx.dys[0], ctx.dys[0]};
}

// y = a b:  da = dy b, db = dy a
absl::StatusOr<Values> GradMul(const GradContext& ctx) {
  Values dxs(2);
  if (ctx.wanted[0]) dxs[0] = TimesDy(ctx, ctx.operand(1));
  if (ctx.wanted[1]) dxs[1] = TimesDy(ctx, ctx.operand(0));
  return dxs;
}

absl::StatusOr<Values> GradMatMul(const GradContext& ctx) {
  const auto& attrs = ctx.node.as<MatMulAttrs>();
  if (attrs.has_epilogue()) return NotDifferentiable(ctx, "a fused matmul");
  return GradOfProduct(ctx, attrs);
}

// Block by block.
absl::StatusOr<Values> GradBlockMatMul(const GradContext& ctx) {
  return GradOfProduct(ctx, ctx.node.as<BlockMatMulAttrs>());
}

// y[r] = x[r] + b:  dx = dy, db = sum over r of dy[r]
absl::StatusOr<Values> GradAddBias(const GradContext& ctx) {
  Values dxs = {ctx.dys[0], Value()};
  if (ctx.wanted[1]) {
    dxs[1] = ctx.graph.Add(OpKind::kReduceRows, {ctx.dys[0]});
  }
  return dxs;
}

// y = sum over r of x[r]:  dx[r] = dy
absl::StatusOr<Values> GradReduceRows(const GradContext& ctx) {
  const int64_t rows = ctx.operand(0).type().dims[0];
  return Values{
      ctx.graph.Add(OpKind::kBroadcastRows, {ctx.dys[0]}, RowsAttrs{rows})};
}

// y[r] = x:  dx = sum over r of dy[r]
absl::StatusOr<Values> GradBroadcastRows(const GradContext& ctx) {
  return Values{ctx.graph.Add(OpKind::kReduceRows, {ctx.dys[0]})};
}

// dx = dy (y > 0); the slope at 0 is taken as 0.
absl::StatusOr<Values> GradRelu(const GradContext& ctx) {
  return GradOfActivation(ctx);
}

// dx = dy (1 - y^2)
absl::StatusOr<Values> GradTanh(const GradContext& ctx) {
  return GradOfActivation(ctx);
}

// dx = dy y (1 - y)
absl::StatusOr<Values> GradSigmoid(const GradContext& ctx) {
  return GradOfActivation(ctx);
}

// y = x Phi(x) (Hendrycks and Gimpel, 2016):  dx = dy (Phi(x) + x phi(x)),
// Phi and phi the standard normal distribution and its density
absl::StatusOr<Values> GradGelu(const GradContext& ctx) {
  return GradOfActivation(ctx);
}

// dx = (dy - sum_c(dy y)) y
absl::StatusOr<Values> GradSoftmax(const GradContext& ctx) {
  return Values{
      ctx.graph.Add(OpKind::kSoftmaxGrad, {ctx.node.result(), ctx.dys[0]})};
}

// s = 1/B sum_r(logsumexp(z[r]) - z[r, label[r]]):
// dz = ds (softmax(z) - onehot(labels)) / B
absl::StatusOr<Values> GradNllLoss(const GradContext& ctx) {
  if (ctx.wanted[1]) return NotDifferentiable(ctx, "the labels");
  const Value logits = ctx.operand(0), labels = ctx.operand(1);
  const float batch = static_cast<float>(BatchRows(ctx.node));
  const Value p = ctx.graph.Add(OpKind::kSoftmax, {logits});
  const Value d = ctx.graph.Add(OpKind::kMinusOneHot, {p, labels});
  const Value mean = ctx.graph.Add(OpKind::kScale, {d}, ScaleAttrs{1 / batch});
  return Values{TimesScalar(ctx, mean), Value()};
}

// s = 1/n sum (y - t)^2:  dy = ds 2 (y - t) / n, dt = -dy
absl::StatusOr<Values> GradMseLoss(const GradContext& ctx) {
  const Value y = ctx.operand(0), t = ctx.operand(1);
  const Value dy = TimesScalar(
      ctx, ctx.graph.Add(OpKind::kMseGrad, {y, t}, ctx.node.as<MeanAttrs>()));
  Values dxs = {dy, Value()};
  if (ctx.wanted[1]) {
    dxs[1] = ctx.graph.Add(OpKind::kScale, {dy}, ScaleAttrs{-1});
  }
  return dxs;
}

// s = sum m w (softplus(z) - y z):  dz = ds m w (sigmoid(z) - y)
absl::StatusOr<Values> GradSigmoidBce(const GradContext& ctx) {
  Values dxs(ctx.node.operands.size());
  for (size_t i = 1; i < dxs.size(); ++i) {
    if (ctx.wanted[i]) return NotDifferentiable(ctx, "what weighs the pairs");
  }
  dxs[0] =
      TimesScalar(ctx, ctx.graph.Add(OpKind::kSigmoidBceGrad, ctx.node.operands,
                                     ctx.node.as<PositivesAttrs>()));
  return dxs;
}

}  // namespace onestep
