// SPDX-License-Identifier: Apache-2.0
// FLOPs and bytes of each op. An addition, a multiplication, a comparison and
// a call of exp, log, erf, tanh or sqrt each count as one FLOP; the terms are
// in the order of the formulas in ops.def.
#include <cstdint>

#include "compiler/ir/graph.h"
#include "compiler/ir/op_rules.h"

namespace onestep {
namespace {

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

// Every operand read once, every result written once.
double AllBytes(const Node& node) {
  double bytes = ResultBytes(node);
  for (const Value& operand : node.operands) bytes += Bytes(operand.type());
  return bytes;
}

// `flops` for each element of the first operand.
OpCost PerElement(const Node& node, double flops) {
  return {flops * Elements(node.operands[0].type()), AllBytes(node)};
}

// Of an update whose last operand may be the weight decay.
double DecayFlops(const Node& node, float weight_decay) {
  const int operands = static_cast<int>(node.operands.size());
  return weight_decay != 0 || operands > node.def().min_operands ? 2 : 0;
}

// Max, subtract, exp, sum, divide.
constexpr double kSoftmaxFlops = 5;

OpCost CostOfActivation(const Node& node) {
  return PerElement(node, ActivationFlops(ActivationOf(node.kind)));
}

OpCost CostOfActivationGrad(const Node& node) {
  return PerElement(node, ActivationGradFlops(ActivationOfGrad(node.kind)));
}

// Of a sparse batch of rows of `cols` values: as many as the rows of the table
// have on average, for those of the batch are known only at run time. All
// where the table's are not known.
double Nonzeros(const Node& batch, int64_t cols) {
  const double rows = static_cast<double>(batch.types[0].dims[0]);
  if (batch.kind == OpKind::kGatherSparse) {
    const int64_t nonzeros = batch.as<GatherSparseAttrs>().nonzeros;
    const int64_t table_rows = batch.operands[0].type().dims[0];
    if (nonzeros > 0) return rows * nonzeros / table_rows;
  }
  return rows * cols;
}

// A word for each nonzero of a sparse batch, of the rest everything.
double BytesOfProduct(const Node& node, double nonzeros) {
  return AllBytes(node) - Bytes(node.operands[0].type()) + 4 * nonzeros;
}

// Softplus of z: max, abs, exp, log, add; y z, subtract; two factors, sum.
constexpr double kSigmoidBceFlops = 10;
// Sigmoid 4, subtract, two factors.
constexpr double kSigmoidBceGradFlops = 7;

// Reads and writes the rows of its tables, and no others. `rows` of h; `mixed`
// of contexts, where h is their mean.
OpCost CostOfWindow(const Node& node, double rows, double mixed) {
  const double cols = static_cast<double>(node.types[1].dims[1]);
  const double contexts = Elements(node.operands[2].type());
  double outputs = 0, bytes = Bytes(node.types[0]);
  for (size_t i = 2; i < node.operands.size(); ++i) {
    const TensorType& type = node.operands[i].type();
    if (type.dtype == DType::kI32) outputs = Elements(type);
    bytes += Bytes(type);
  }
  bytes += 2 * 4 * cols * (contexts + outputs);
  const double pairs = rows * outputs;
  return {pairs * (3 * 2 * cols + kSigmoidBceFlops + kSigmoidBceGradFlops) +
              cols * (contexts + outputs) + 2 * 2 * cols * mixed,
          bytes};
}

}  // namespace

// Leaves are there before the step; a constant is written once at its start.
OpCost CostInput(const Node&) { return {}; }
OpCost CostParam(const Node&) { return {}; }
OpCost CostConstant(const Node& node) { return {0, ResultBytes(node)}; }

// Only the gathered rows of the table are read.
OpCost CostGatherRows(const Node& node) {
  return {0, Bytes(node.operands[1].type()) + 2 * ResultBytes(node)};
}

// Only those rows of the table are read and written.
OpCost CostScatterAdd(const Node& node) {
  const TensorType& rows = node.operands[2].type();
  return {Elements(rows), Bytes(node.operands[1].type()) + 3 * Bytes(rows)};
}

OpCost CostGatherConvert(const Node& node) {
  const double n = Elements(node.types[0]);
  const DType table = node.operands[0].type().dtype;
  const double rows_read = n * static_cast<double>(DTypeBytes(table));
  return {n, Bytes(node.operands[1].type()) + rows_read + ResultBytes(node)};
}

OpCost CostCast(const Node& node) { return {0, AllBytes(node)}; }
OpCost CostOneHot(const Node& node) { return {0, AllBytes(node)}; }
OpCost CostScale(const Node& node) { return PerElement(node, 1); }
// alpha s is one number.
OpCost CostMulScalar(const Node& node) { return PerElement(node, 1); }
OpCost CostAdd(const Node& node) { return PerElement(node, 1); }
OpCost CostMul(const Node& node) { return PerElement(node, 1); }

OpCost CostMatMul(const Node& node) {
  const auto& attrs = node.as<MatMulAttrs>();
  const auto& a = node.operands[0].type();
  const double k = static_cast<double>(a.dims[attrs.trans_a ? 0 : 1]);
  const double epilogue =
      attrs.bias + attrs.accumulate + ActivationFlops(attrs.activation);
  return {Elements(node.types[0]) * (2 * k + epilogue), AllBytes(node)};
}

OpCost CostBlockMatMul(const Node& node) {
  const auto& attrs = node.as<BlockMatMulAttrs>();
  const std::vector<int64_t>& a = node.operands[0].type().dims;
  const int64_t k = attrs.trans_a ? a[0] / attrs.blocks : a[1];
  return {2.0 * k * Elements(node.types[0]), AllBytes(node)};
}

OpCost CostAddBias(const Node& node) { return PerElement(node, 1); }
OpCost CostReduceRows(const Node& node) { return PerElement(node, 1); }
OpCost CostBroadcastRows(const Node& node) { return {0, AllBytes(node)}; }

OpCost CostRelu(const Node& node) { return CostOfActivation(node); }
OpCost CostTanh(const Node& node) { return CostOfActivation(node); }
OpCost CostSigmoid(const Node& node) { return CostOfActivation(node); }
OpCost CostGelu(const Node& node) { return CostOfActivation(node); }
OpCost CostReluGrad(const Node& node) { return CostOfActivationGrad(node); }
OpCost CostTanhGrad(const Node& node) { return CostOfActivationGrad(node); }
OpCost CostSigmoidGrad(const Node& node) { return CostOfActivationGrad(node); }
OpCost CostGeluGrad(const Node& node) { return CostOfActivationGrad(node); }

OpCost CostSoftmax(const Node& node) { return PerElement(node, kSoftmaxFlops); }
// Multiply and sum, subtract and multiply.
OpCost CostSoftmaxGrad(const Node& node) { return PerElement(node, 4); }

// Max, subtract, exp, sum; per row log, add, subtract, sum.
OpCost CostNllLoss(const Node& node) {
  OpCost cost = PerElement(node, 4);
  cost.flops += 4 * Elements(node.operands[1].type());
  return cost;
}

OpCost CostMinusOneHot(const Node& node) {
  return {Elements(node.operands[1].type()), AllBytes(node)};
}

OpCost CostMseLoss(const Node& node) { return PerElement(node, 3); }
OpCost CostMseGrad(const Node& node) { return PerElement(node, 2); }
OpCost CostSigmoidBce(const Node& node) {
  return PerElement(node, kSigmoidBceFlops);
}
OpCost CostSigmoidBceGrad(const Node& node) {
  return PerElement(node, kSigmoidBceGradFlops);
}
OpCost CostCountCorrect(const Node& node) { return PerElement(node, 1); }

OpCost CostSgdUpdate(const Node& node) {
  return PerElement(node,
                    2 + DecayFlops(node, node.as<SgdAttrs>().weight_decay));
}

OpCost CostMomentumUpdate(const Node& node) {
  const auto& attrs = node.as<MomentumAttrs>();
  return PerElement(node, 4 + (attrs.nesterov ? 2 : 0) +
                              DecayFlops(node, attrs.weight_decay));
}

// m' 3, v' 4, both hats 2; sqrt, add, divide, multiply, subtract.
OpCost CostAdamUpdate(const Node& node) {
  return PerElement(node,
                    14 + DecayFlops(node, node.as<AdamAttrs>().weight_decay));
}

OpCost CostBroadcastModels(const Node& node) { return {0, AllBytes(node)}; }

// Only the part is read.
OpCost CostSlice(const Node& node) { return {0, 2 * ResultBytes(node)}; }

// Of one worker: the result's elements are read where they lie, those of a sum
// at every worker.
OpCost CostExchange(const Node& node) {
  const auto& attrs = node.as<ExchangeAttrs>();
  const double terms =
      attrs.from == -1 ? static_cast<double>(attrs.workers) : 1;
  return {(terms - 1) * Elements(node.types[0]),
          (terms + 1) * ResultBytes(node)};
}

// The softmax and its scale, or subtract, square, sum and scale; one
// comparison for the count, one addition for the bias gradient.
OpCost CostLossGrad(const Node& node) {
  const auto& attrs = node.as<LossGradAttrs>();
  const double per_logit =
      (attrs.loss == Loss::kSoftmaxXent ? kSoftmaxFlops + 1 : 4) + 1 +
      (attrs.bias != BiasGrad::kNone ? 1 : 0);
  OpCost cost = PerElement(node, per_logit);
  const TensorType& logits = node.operands[0].type();
  if (attrs.loss == Loss::kSoftmaxXent) {
    cost.flops += 5 * static_cast<double>(logits.dims[0]);  // loss, onehot
  }
  if (attrs.gather) {  // only the labels of the batch are read
    const TensorType& labels = node.operands[1].type();
    cost.bytes += static_cast<double>(logits.dims[0] - labels.dims[0]) *
                  static_cast<double>(DTypeBytes(labels.dtype));
  }
  return cost;
}

OpCost CostActivationGrad(const Node& node) {
  const auto& attrs = node.as<ActivationGradAttrs>();
  return PerElement(node, ActivationGradFlops(attrs.activation) +
                              (attrs.bias != BiasGrad::kNone ? 1 : 0));
}

OpCost CostGatherSparse(const Node& node) {
  const double rows = Elements(node.operands[1].type());
  const int64_t cols = node.operands[0].type().dims[1];
  return {0, 4 * rows + rows * cols + 4 * Nonzeros(node, cols)};
}

OpCost CostSparseMatMul(const Node& node) {
  const auto& attrs = node.as<SparseMatMulAttrs>();
  const double n = static_cast<double>(node.types[0].dims[1]);
  const double epilogue = attrs.bias + ActivationFlops(attrs.activation);
  const double nonzeros =
      Nonzeros(*node.operands[0].node, node.operands[1].type().dims[0]);
  return {2 * n * nonzeros + epilogue * Elements(node.types[0]),
          BytesOfProduct(node, nonzeros)};
}

OpCost CostSparseOuter(const Node& node) {
  const double n = static_cast<double>(node.types[0].dims[1]);
  const double nonzeros =
      Nonzeros(*node.operands[0].node, node.types[0].dims[0]);
  return {2 * n * nonzeros, BytesOfProduct(node, nonzeros)};
}

OpCost CostSgnsWindow(const Node& node) {
  return CostOfWindow(node, Elements(node.operands[2].type()), 0);
}

OpCost CostHsWindow(const Node& node) {
  return CostOfWindow(node, Elements(node.operands[2].type()), 0);
}

OpCost CostCbowWindow(const Node& node) {
  return CostOfWindow(node, 1, Elements(node.operands[2].type()));
}

}  // namespace onestep
