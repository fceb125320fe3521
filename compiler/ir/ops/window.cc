// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/window.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"

namespace onestep {
namespace {

// (in, out, contexts, `per_context` operands, outputs, weights[, labels], lr).
absl::StatusOr<Types> InferWindow(OpKind kind, const std::string& want,
                                  const Types& in, const Types& per_context,
                                  const Attrs& attrs) {
  const size_t outputs = 3 + per_context.size();
  const bool labels = in.size() == outputs + 4;
  const bool leaves = IsMatrix(in[0]) && IsMatrix(in[1]) &&
                      in[0].dims[1] == in[1].dims[1] &&
                      IsVector(in[outputs], DType::kI32);
  Types types;
  if (leaves) {
    types = {in[0], in[1], I32({in[2].num_elements()})};
    types.insert(types.end(), per_context.begin(), per_context.end());
    types.push_back(in[outputs]);
    const TensorType row = F32({1, in[outputs].dims[0]});
    types.insert(types.end(), labels ? 2 : 1, row);
    types.push_back(F32({}));
  }
  if (in != types) return Wrong(kind, want, in);
  const int64_t positives = std::get<PositivesAttrs>(attrs).positives;
  const int64_t most = labels ? 0 : in[outputs].dims[0];
  if (positives < 0 || positives > most) {
    return Wrong(kind, absl::StrCat("positives 0 to ", most),
                 absl::StrCat("positives=", positives));
  }
  return Types{F32({}), in[0], in[1]};
}

absl::StatusOr<Types> InferSgnsWindow(const Types& in, const Attrs& attrs) {
  return InferWindow(OpKind::kSgnsWindow,
                     "in f32[V,D], out f32[U,D], contexts i32[C], mask f32[C], "
                     "outputs i32[N], weights[, y] f32[1,N], lr f32[]",
                     in, {F32({in[2].num_elements()})}, attrs);
}

absl::StatusOr<Types> InferCbowWindow(const Types& in, const Attrs& attrs) {
  const TensorType row = F32({1, in[2].num_elements()});
  return InferWindow(
      OpKind::kCbowWindow,
      "in f32[V,D], out f32[U,D], contexts i32[C], mean, spread "
      "f32[1,C], outputs i32[N], weights[, y] f32[1,N], lr f32[]",
      in, {row, row}, attrs);
}

// Of a pair: the dot product and its two gradients, the loss and its gradient.
// `rows` of h; reads and writes the rows of its tables, and no others.
OpCost CostOfWindow(const Node& node) {
  const WindowOp op(node);
  constexpr double kLossFlops = 17;  // as of sigmoid_bce and its gradient
  const double cols = static_cast<double>(op.in.type().dims[1]);
  const double contexts = Elements(op.contexts.type());
  const double outputs = Elements(op.outputs.type());
  const double rows = op.cbow ? 1 : contexts;
  const double mean_flops = op.cbow ? 2 * 2 * cols * contexts : 0;
  double bytes = Bytes(node.types[WindowOp::kLoss]);
  for (const Value operand : node.operands) {
    if (operand != op.in && operand != op.out) bytes += Bytes(operand.type());
  }
  bytes += 2 * 4 * cols * (contexts + outputs);
  return {rows * outputs * (3 * 2 * cols + kLossFlops) +
              cols * (contexts + outputs) + mean_flops,
          bytes};
}

// The tables and the learning rate.
ModelAxes BatchWindow(int operands, const Attrs& attrs) {
  ModelAxes axes = AllShared(operands, attrs);
  for (const int i : {0, 1, operands - 1}) axes[i] = ModelAxis::kPerModel;
  return axes;
}

// in' over in, out' over out.
bool AliasWindow(const Node&, int result, int operand) {
  return operand == result - 1;
}

}  // namespace

// One step is too short to share out.
const OpRules kSgnsWindowRules = {
    .infer = InferSgnsWindow,
    .grad = NotDifferentiated,
    .cost = CostOfWindow,
    .batch = BatchWindow,
    .partition = OnlyReplicated,
    .alias = AliasWindow,
};

const OpRules kCbowWindowRules = {
    .infer = InferCbowWindow,
    .grad = NotDifferentiated,
    .cost = CostOfWindow,
    .batch = BatchWindow,
    .partition = OnlyReplicated,
    .alias = AliasWindow,
};

WindowOp::WindowOp(const Node& node)
    : cbow(node.kind == OpKind::kCbowWindow),
      positives(node.as<PositivesAttrs>().positives) {
  size_t next = 0;
  const auto take = [&] { return node.operands[next++]; };
  in = take();
  out = take();
  contexts = take();
  (cbow ? mean : mask) = take();
  if (cbow) spread = take();
  outputs = take();
  weights = take();
  if (next + 1 < node.operands.size()) labels = take();
  lr = take();
}

std::vector<Value> WindowOp::Operands() const {
  std::vector<Value> operands = {in, out, contexts};
  for (const Value optional : {mask, mean, spread}) {
    if (optional) operands.push_back(optional);
  }
  operands.push_back(outputs);
  operands.push_back(weights);
  if (labels) operands.push_back(labels);
  operands.push_back(lr);
  return operands;
}

}  // namespace onestep
