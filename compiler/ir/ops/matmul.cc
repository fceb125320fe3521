// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/matmul.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"

namespace onestep {
namespace {

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

// ---- matmul -----------------------------------------------------------------

absl::StatusOr<Types> InferMatMul(const Types& in, const Attrs& attrs) {
  const auto& matmul = std::get<MatMulAttrs>(attrs);
  if (matmul.accumulate &&
      (matmul.bias || matmul.activation != Activation::kNone)) {
    return Wrong(OpKind::kMatMul, "accumulate or bias and activation", "both");
  }
  if (IsMatrix(in[0]) && IsMatrix(in[1])) {
    const int64_t m = in[0].dims[matmul.trans_a ? 1 : 0];
    const int64_t k = in[0].dims[matmul.trans_a ? 0 : 1];
    const int64_t n = in[1].dims[matmul.trans_b ? 0 : 1];
    Types types = {in[0], matmul.trans_b ? F32({n, k}) : F32({k, n})};
    if (matmul.bias) types.push_back(F32({n}));
    if (matmul.accumulate) types.push_back(F32({m, n}));
    if (in == types) return Types{F32({m, n})};
  }
  std::string got = absl::StrCat(in[0].ToString(), " x ", in[1].ToString());
  for (size_t i = 2; i < in.size(); ++i) {
    absl::StrAppend(&got, " + ", in[i].ToString());
  }
  return Wrong(OpKind::kMatMul,
               absl::StrCat(matmul.trans_a ? "a[k,m] x " : "a[m,k] x ",
                            matmul.trans_b ? "b[n,k]" : "b[k,n]",
                            matmul.bias ? " + bias[n]" : "",
                            matmul.accumulate ? " + c[m,n]" : ""),
               got);
}

absl::StatusOr<Values> GradMatMul(const GradContext& ctx) {
  const auto& attrs = ctx.node.as<MatMulAttrs>();
  if (attrs.has_epilogue()) return NotDifferentiable(ctx, "a fused matmul");
  return GradOfProduct(ctx, attrs);
}

OpCost CostMatMul(const Node& node) {
  const MatMulOp op(node);
  const double epilogue = op.attrs.bias + op.attrs.accumulate +
                          ActivationFlops(op.attrs.activation);
  return {Elements(node.types[0]) * (2 * static_cast<double>(op.k) + epilogue),
          AllBytes(node)};
}

// y[m,n] is split by m, by n, or is a sum over ranges of k.
Strategies PartitionMatMul(const Node& node) {
  const auto& attrs = node.as<MatMulAttrs>();
  const Placement a_m = attrs.trans_a ? S1 : S0, a_k = attrs.trans_a ? S0 : S1;
  const Placement b_k = attrs.trans_b ? S1 : S0, b_n = attrs.trans_b ? S0 : S1;
  // `c` is y's own placement.
  const auto with = [&attrs](Placement a, Placement b, Placement bias,
                             Placement y) {
    Strategy strategy{{a, b}, {y}};
    if (attrs.bias) strategy.operands.push_back(bias);
    if (attrs.accumulate) strategy.operands.push_back(y);
    return strategy;
  };
  Strategies list = {with(R, R, R, R), with(a_m, R, R, S0),
                     with(R, b_n, S0, S1)};
  if (attrs.activation == Activation::kNone) {
    list.push_back(with(a_k, b_k, P, P));
    list.push_back(with(P, R, P, P));
    list.push_back(with(R, P, P, P));
  }
  return list;
}

// y over c, which it adds to.
bool AliasMatMul(const Node& node, int, int operand) {
  return node.as<MatMulAttrs>().accumulate && operand == 2;
}

// ---- block_matmul -----------------------------------------------------------

absl::StatusOr<Types> InferBlockMatMul(const Types& in, const Attrs& attrs) {
  const auto& matmul = std::get<BlockMatMulAttrs>(attrs);
  const int64_t blocks = matmul.blocks;
  if (blocks < 1) {
    return Wrong(OpKind::kBlockMatMul, "blocks >= 1",
                 absl::StrCat("blocks=", blocks));
  }
  if (IsMatrix(in[0]) && IsMatrix(in[1]) && in[0].dims[0] % blocks == 0 &&
      in[1].dims[0] % blocks == 0) {
    int64_t m = in[0].dims[0] / blocks, k = in[0].dims[1];
    int64_t b_k = in[1].dims[0] / blocks, n = in[1].dims[1];
    if (matmul.trans_a) std::swap(m, k);
    if (matmul.trans_b) std::swap(b_k, n);
    if (k == b_k) return Types{F32({blocks * m, n})};
  }
  return Wrong(OpKind::kBlockMatMul,
               absl::StrCat(blocks, " blocks of ",
                            matmul.trans_a ? "a[k,m] x " : "a[m,k] x ",
                            matmul.trans_b ? "b[n,k]" : "b[k,n]"),
               in);
}

// Block by block.
absl::StatusOr<Values> GradBlockMatMul(const GradContext& ctx) {
  return GradOfProduct(ctx, ctx.node.as<BlockMatMulAttrs>());
}

OpCost CostBlockMatMul(const Node& node) {
  const auto& attrs = node.as<BlockMatMulAttrs>();
  const std::vector<int64_t>& a = node.operands[0].type().dims;
  const int64_t k = attrs.trans_a ? a[0] / attrs.blocks : a[1];
  return {2.0 * k * Elements(node.types[0]), AllBytes(node)};
}

// What is split must not be an axis that holds the blocks.
Strategies PartitionBlockMatMul(const Node& node) {
  const auto& attrs = node.as<BlockMatMulAttrs>();
  Strategies list = {AllAt(node, R), {{P, R}, {P}}, {{R, P}, {P}}};
  if (!attrs.trans_b) list.push_back({{R, S1}, {S1}});
  if (!attrs.trans_a && attrs.trans_b) list.push_back({{S1, S1}, {P}});
  return list;
}

}  // namespace

// The first layer multiplies one batch by the weights of all models.
const OpRules kMatMulRules = {
    .infer = InferMatMul,
    .grad = GradMatMul,
    .cost = CostMatMul,
    .batch = AllPerModelBut<0, ModelAxis::kEither>,
    .partition = PartitionMatMul,
    .alias = AliasMatMul,
};

const OpRules kBlockMatMulRules = {
    .infer = InferBlockMatMul,
    .grad = GradBlockMatMul,
    .cost = CostBlockMatMul,
    .batch = AllPerModel,
    .partition = PartitionBlockMatMul,
    .alias = NeverInPlace,
};

MatMulOp::MatMulOp(const Node& node)
    : attrs(node.as<MatMulAttrs>()),
      a(node.operands[0]),
      b(node.operands[1]),
      m(node.types[0].dims[0]),
      n(node.types[0].dims[1]),
      k(a.type().dims[attrs.trans_a ? 0 : 1]) {
  if (attrs.bias) bias = node.operands[2];
  if (attrs.accumulate) c = node.operands[2];
}

std::vector<Value> MatMulOp::Operands() const {
  std::vector<Value> operands = {a, b};
  if (bias) operands.push_back(bias);
  if (c) operands.push_back(c);
  return operands;
}

}  // namespace onestep
