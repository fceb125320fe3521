// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/loss.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// The batch of a mean has the rows of `part` and maybe more.
absl::Status CheckBatchRows(OpKind kind, int64_t rows, const TensorType& part) {
  if (rows == 0 || (part.rank() > 0 && rows >= part.dims[0])) {
    return absl::OkStatus();
  }
  return Wrong(kind,
               part.rank() > 0 ? absl::StrCat("rows 0 or >= ", part.dims[0])
                               : "rows 0 with a scalar",
               absl::StrCat("rows=", rows));
}

// Labels are data, which all models share.
constexpr auto LabelsAreShared = AllPerModelBut<1, ModelAxis::kShared>;
// A target is data, or computed for each model.
constexpr auto TargetIsEither = AllPerModelBut<1, ModelAxis::kEither>;

// ---- softmax ----------------------------------------------------------------

// Max, subtract, exp, sum, divide.
constexpr double kSoftmaxFlops = 5;

absl::StatusOr<Types> InferSoftmax(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0])) return Wrong(OpKind::kSoftmax, "x f32[B,C]", in);
  return Types{in[0]};
}

// dx = (dy - sum_c(dy y)) y
absl::StatusOr<Values> GradSoftmax(const GradContext& ctx) {
  return Values{
      ctx.graph.Add(OpKind::kSoftmaxGrad, {ctx.node.result(), ctx.dys[0]})};
}

absl::StatusOr<Types> InferSoftmaxGrad(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0]) || in[0] != in[1]) {
    return Wrong(OpKind::kSoftmaxGrad, "y, dy f32[B,C]", in);
  }
  return Types{in[0]};
}

Strategies PartitionSoftmaxGrad(const Node& node) {
  return {AllAt(node, R), AllAt(node, S0), {{R, P}, {P}}};
}

// ---- nll_loss, minus_one_hot, count_correct ---------------------------------

absl::StatusOr<Types> InferNllLoss(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(CheckLabels(OpKind::kNllLoss, "logits", in));
  RETURN_IF_ERROR(
      CheckBatchRows(OpKind::kNllLoss, std::get<MeanAttrs>(attrs).rows, in[0]));
  return Types{F32({})};
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

// Max, subtract, exp, sum; per row log, add, subtract, sum.
OpCost CostNllLoss(const Node& node) {
  OpCost cost = PerElement(node, 4);
  cost.flops += 4 * Elements(node.operands[1].type());
  return cost;
}

absl::StatusOr<Types> InferMinusOneHot(const Types& in, const Attrs&) {
  RETURN_IF_ERROR(CheckLabels(OpKind::kMinusOneHot, "p", in));
  return Types{in[0]};
}

OpCost CostMinusOneHot(const Node& node) {
  return {Elements(node.operands[1].type()), AllBytes(node)};
}

absl::StatusOr<Types> InferCountCorrect(const Types& in, const Attrs&) {
  RETURN_IF_ERROR(CheckLabels(OpKind::kCountCorrect, "logits", in));
  return Types{F32({})};
}

// ---- mse_loss, mse_grad -----------------------------------------------------

absl::StatusOr<Types> InferMseLoss(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(InferBinary("mse_loss", "y, t", in).status());
  RETURN_IF_ERROR(
      CheckBatchRows(OpKind::kMseLoss, std::get<MeanAttrs>(attrs).rows, in[0]));
  return Types{F32({})};
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

// A scalar has no rows.
Strategies PartitionMseLoss(const Node& node) {
  if (node.operands[0].type().rank() == 0) return OnlyReplicated(node);
  return SumOfRows(node);
}

absl::StatusOr<Types> InferMseGrad(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(
      CheckBatchRows(OpKind::kMseGrad, std::get<MeanAttrs>(attrs).rows, in[0]));
  return InferBinary("mse_grad", "y, t", in);
}

// Only rows are split: `rows` cannot say that there are more columns.
Strategies PartitionMseGrad(const Node& node) {
  Strategies list = {AllAt(node, R), AllAt(node, P)};
  if (node.types[0].rank() > 0) list.push_back(AllAt(node, S0));
  return list;
}

// ---- sigmoid_bce ------------------------------------------------------------

// Softplus of z: max, abs, exp, log, add; y z, subtract; two factors, sum.
constexpr int kSigmoidBceFlops = 10;
// Sigmoid 4, subtract, two factors.
constexpr int kSigmoidBceGradFlops = 7;

// z f32[B,C], mask f32[B], weights f32[G,C], then labels alike if any.
absl::Status CheckPairs(OpKind kind, const Types& in, const Attrs& attrs) {
  const bool labels = in.size() > 3;
  const bool fit =
      IsMatrix(in[0]) && IsMatrix(in[2]) && in[1] == F32({in[0].dims[0]}) &&
      in[2].dims[1] == in[0].dims[1] && in[0].dims[0] % in[2].dims[0] == 0 &&
      (!labels || in[3] == in[2]);
  if (!fit) {
    return Wrong(kind,
                 "z f32[B,C], mask f32[B], weights f32[G,C][, y f32[G,C]], B a "
                 "multiple of G",
                 in);
  }
  const int64_t positives = std::get<PositivesAttrs>(attrs).positives;
  const int64_t most = labels ? 0 : in[0].dims[1];
  if (positives >= 0 && positives <= most) return absl::OkStatus();
  return Wrong(kind,
               labels ? "positives 0 beside labels"
                      : absl::StrCat("positives 0 to ", most),
               absl::StrCat("positives=", positives));
}

absl::StatusOr<Types> InferSigmoidBce(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(CheckPairs(OpKind::kSigmoidBce, in, attrs));
  return Types{F32({})};
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

absl::StatusOr<Types> InferSigmoidBceGrad(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(CheckPairs(OpKind::kSigmoidBceGrad, in, attrs));
  return Types{in[0]};
}

// All but z says which pairs there are.
ModelAxes OnlyLogitsPerModel(int operands, const Attrs& attrs) {
  ModelAxes axes = AllShared(operands, attrs);
  axes[0] = ModelAxis::kPerModel;
  return axes;
}

// The rows of one block: `positives` counts columns.
Strategies PartitionSigmoidBce(const Node& node) {
  Strategies list = OnlyReplicated(node);
  if (SigmoidBceOp(node).weights.type().dims[0] > 1) return list;
  Strategy& rows = list.emplace_back(Strategy{{S0, S0, R}, {P}});
  if (node.operands.size() > 3) rows.operands.push_back(R);
  return list;
}

Strategies PartitionSigmoidBceGrad(const Node& node) {
  Strategies list = PartitionSigmoidBce(node);
  if (list.size() > 1) list[1].results = {S0};
  return list;
}

// ---- loss_grad --------------------------------------------------------------

absl::StatusOr<Types> InferLossGrad(const Types& in, const Attrs& attrs) {
  const auto& loss = std::get<LossGradAttrs>(attrs);
  const bool update = loss.bias == BiasGrad::kUpdate;
  if (IsMatrix(in[0]) && IsVector(in[1], DType::kI32)) {
    const int64_t batch = in[0].dims[0], classes = in[0].dims[1];
    Types types = {in[0]};
    if (loss.gather) types.push_back(in[1]);  // labels of any length
    types.push_back(I32({batch}));
    if (loss.scaled) types.push_back(F32({}));
    if (update) types.push_back(F32({classes}));
    if (in == types) {
      RETURN_IF_ERROR(CheckBatchRows(OpKind::kLossGrad, loss.rows, in[0]));
      Types results = {F32({}), in[0], F32({})};
      if (loss.bias != BiasGrad::kNone) results.push_back(F32({classes}));
      return results;
    }
  }
  return Wrong(
      OpKind::kLossGrad,
      absl::StrCat("logits f32[B,C], labels ",
                   loss.gather ? "i32[N], indices i32[B]" : "i32[B]",
                   loss.scaled ? ", lr f32[]" : "", update ? ", b f32[C]" : ""),
      in);
}

// The softmax and its scale, or subtract, square, sum and scale; one
// comparison for the count, one addition for the bias gradient.
OpCost CostLossGrad(const Node& node) {
  const LossGradOp op(node);
  const bool softmax = op.attrs.loss == Loss::kSoftmaxXent;
  const double per_logit = (softmax ? kSoftmaxFlops + 1 : 4) + 1 +
                           (op.attrs.bias != BiasGrad::kNone ? 1 : 0);
  OpCost cost = PerElement(node, per_logit);
  const double rows = static_cast<double>(op.logits.type().dims[0]);
  if (softmax) cost.flops += 5 * rows;  // loss, onehot
  if (op.attrs.gather) {                // only the labels of the batch are read
    const TensorType& labels = op.labels.type();
    cost.bytes += (rows - Elements(labels)) *
                  static_cast<double>(DTypeBytes(labels.dtype));
  }
  return cost;
}

// Labels, and the indices of their rows, are shared.
ModelAxes BatchLossGrad(int operands, const Attrs& attrs) {
  ModelAxes axes = LabelsAreShared(operands, attrs);
  if (std::get<LossGradAttrs>(attrs).gather) axes[2] = ModelAxis::kShared;
  return axes;
}

Strategies PartitionLossGrad(const Node& node) {
  const auto& attrs = node.as<LossGradAttrs>();
  Strategy rows{{S0}, {P, S0, P}};
  if (attrs.gather) rows.operands.push_back(R);  // labels of all rows
  rows.operands.push_back(S0);
  if (attrs.scaled) rows.operands.push_back(R);
  if (attrs.bias == BiasGrad::kUpdate) rows.operands.push_back(P);
  if (attrs.bias != BiasGrad::kNone) rows.results.push_back(P);
  return {AllAt(node, R), rows};
}

// dlogits over logits, and the new bias over the old.
bool AliasLossGrad(const Node& node, int result, int operand) {
  if (result == LossGradOp::kDlogits) return operand == 0;
  return result == LossGradOp::kBiasGrad &&
         node.as<LossGradAttrs>().bias == BiasGrad::kUpdate &&
         operand == std::ssize(node.operands) - 1;
}

std::optional<RowLookup> LookupOfLossGrad(const Node& node) {
  if (!node.as<LossGradAttrs>().gather) return std::nullopt;
  return RowLookup{.table = 1, .indices = 2};
}

}  // namespace

const OpRules kSoftmaxRules = {
    .infer = InferSoftmax,
    .grad = GradSoftmax,
    .cost = FlopsPerElement<static_cast<int>(kSoftmaxFlops)>,
    .batch = AllPerModel,
    .partition = ByRows,
    .alias = ElementwiseInPlace,
};

// Multiply and sum, subtract and multiply.
const OpRules kSoftmaxGradRules = {
    .infer = InferSoftmaxGrad,
    .grad = NotDifferentiated,
    .cost = FlopsPerElement<4>,
    .batch = AllPerModel,
    .partition = PartitionSoftmaxGrad,
    .alias = ElementwiseInPlace,
};

const OpRules kNllLossRules = {
    .infer = InferNllLoss,
    .grad = GradNllLoss,
    .cost = CostNllLoss,
    .batch = LabelsAreShared,
    .partition = SumOfRows,
    .alias = NeverInPlace,
};

const OpRules kMinusOneHotRules = {
    .infer = InferMinusOneHot,
    .grad = NotDifferentiated,
    .cost = CostMinusOneHot,
    .batch = LabelsAreShared,
    .partition = ByRows,
    .alias = ElementwiseInPlace,
};

const OpRules kMseLossRules = {
    .infer = InferMseLoss,
    .grad = GradMseLoss,
    .cost = FlopsPerElement<3>,
    .batch = TargetIsEither,
    .partition = PartitionMseLoss,
    .alias = NeverInPlace,
};

const OpRules kMseGradRules = {
    .infer = InferMseGrad,
    .grad = NotDifferentiated,
    .cost = FlopsPerElement<2>,
    .batch = TargetIsEither,
    .partition = PartitionMseGrad,
    .alias = ElementwiseInPlace,
};

const OpRules kSigmoidBceRules = {
    .infer = InferSigmoidBce,
    .grad = GradSigmoidBce,
    .cost = FlopsPerElement<kSigmoidBceFlops>,
    .batch = OnlyLogitsPerModel,
    .partition = PartitionSigmoidBce,
    .alias = NeverInPlace,
};

const OpRules kSigmoidBceGradRules = {
    .infer = InferSigmoidBceGrad,
    .grad = NotDifferentiated,
    .cost = FlopsPerElement<kSigmoidBceGradFlops>,
    .batch = OnlyLogitsPerModel,
    .partition = PartitionSigmoidBceGrad,
    .alias = ElementwiseInPlace,
};

const OpRules kCountCorrectRules = {
    .infer = InferCountCorrect,
    .grad = NotDifferentiated,
    .cost = FlopsPerElement<1>,
    .batch = LabelsAreShared,
    .partition = SumOfRows,
    .alias = NeverInPlace,
};

const OpRules kLossGradRules = {
    .infer = InferLossGrad,
    .grad = NotDifferentiated,
    .cost = CostLossGrad,
    .batch = BatchLossGrad,
    .partition = PartitionLossGrad,
    .alias = AliasLossGrad,
    .lookup = LookupOfLossGrad,
};

LossGradOp::LossGradOp(const Node& node)
    : attrs(node.as<LossGradAttrs>()),
      logits(node.operands[0]),
      labels(node.operands[1]) {
  size_t next = 2;
  if (attrs.gather) indices = node.operands[next++];
  if (attrs.scaled) lr = node.operands[next++];
  if (attrs.bias == BiasGrad::kUpdate) bias = node.operands[next++];
}

std::vector<Value> LossGradOp::Operands() const {
  std::vector<Value> operands = {logits, labels};
  for (const Value optional : {indices, lr, bias}) {
    if (optional) operands.push_back(optional);
  }
  return operands;
}

SigmoidBceOp::SigmoidBceOp(const Node& node)
    : positives(node.as<PositivesAttrs>().positives),
      z(node.operands[0]),
      mask(node.operands[1]),
      weights(node.operands[2]) {
  if (node.operands.size() > 3) labels = node.operands[3];
}

namespace {
int64_t RowsOf(const TensorType& type) {
  return type.rank() == 0 ? 1 : type.dims[0];
}
}  // namespace

int64_t BatchRows(const Node& node) {
  const auto* const loss = std::get_if<LossGradAttrs>(&node.attrs);
  const int64_t rows = loss != nullptr ? loss->rows : node.as<MeanAttrs>().rows;
  return rows != 0 ? rows : RowsOf(node.operands[0].type());
}

int64_t BatchElements(const Node& node) {
  const TensorType& type = node.operands[0].type();
  return BatchRows(node) * (type.num_elements() / RowsOf(type));
}

const char* ToString(Loss loss) {
  switch (loss) {
    case Loss::kSoftmaxXent:
      return "softmax_xent";
    case Loss::kMse:
      return "mse";
  }
  return "?";
}

}  // namespace onestep
