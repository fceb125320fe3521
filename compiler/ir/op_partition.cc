// SPDX-License-Identifier: Apache-2.0
// Partition rules. In them R is replicated, S0 and S1 are split by rows and by
// columns, and P is partial: what an op is linear in may stay a sum.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/op_rules.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

using Strategies = std::vector<Strategy>;

constexpr Placement R;
constexpr Placement S0{Placement::kSplit, 0};
constexpr Placement S1{Placement::kSplit, 1};
constexpr Placement P{Placement::kPartial, 0};

// Every operand and result in the same place.
Strategy All(const Node& node, Placement placement) {
  return {std::vector(node.operands.size(), placement),
          std::vector(node.types.size(), placement)};
}

// Replicated, or all split on the same axis: for leaves, and for ops whose
// operands and results are of one shape and meet element by element.
Strategies SplitAlike(const Node& node) {
  Strategies list = {All(node, R)};
  for (int axis = 0; axis < node.types[0].rank(); ++axis) {
    list.push_back(All(node, Placement::Split(axis)));
  }
  return list;
}

// Likewise, and linear in all operands together.
Strategies SplitAlikeOrPartial(const Node& node) {
  Strategies list = SplitAlike(node);
  list.push_back(All(node, P));
  return list;
}

// (y, dy) -> dx, linear in dy.
Strategies GradOf(const Node& node) {
  Strategies list = SplitAlike(node);
  list.push_back({{R, P}, {P}});
  return list;
}

// Rows of the batch stay apart.
Strategies ByRows(const Node& node) { return {All(node, R), All(node, S0)}; }

// Rows are split and each worker has a part of the sum over them.
Strategies SumOfRows(const Node& node) {
  return {All(node, R), {{S0, S0}, {P}}};
}

// The batch by its indices, or the columns of the table.
Strategies Gather(const Node& node) {
  Strategies list = {All(node, R), {{R, S0}, {S0}}};
  if (node.types[0].rank() == 2) list.push_back({{S1, R}, {S1}});
  return list;
}

// All tensors alike; the last operands are scalars.
Strategies Update(const Node& node) {
  Strategies list = SplitAlike(node);
  for (Strategy& strategy : list) {
    for (size_t i = 1; i < node.operands.size(); ++i) {
      if (node.operands[i].type().rank() == 0) strategy.operands[i] = R;
    }
  }
  return list;
}

std::string Join(const std::vector<Placement>& placements) {
  return absl::StrJoin(placements, ", ", [](std::string* out, Placement p) {
    out->append(p.ToString());
  });
}

}  // namespace

std::string Placement::ToString() const {
  switch (kind) {
    case kReplicated:
      return "replicated";
    case kSplit:
      return absl::StrCat("split(", axis, ")");
    case kPartial:
      return "partial";
    case kModels:
      return "models";
  }
  CHECK(false);
}

std::string Strategy::ToString() const {
  return absl::StrCat("(", Join(operands), ") -> ", Join(results));
}

Placement ByModels(const TensorType& type) {
  return type.models > 0 ? Placement::Models() : Placement::Replicated();
}

Strategy ByModels(const Node& node) {
  Strategy strategy;
  for (const Value& v : node.operands) {
    strategy.operands.push_back(ByModels(v.type()));
  }
  for (const TensorType& t : node.types) {
    strategy.results.push_back(ByModels(t));
  }
  return strategy;
}

Attrs LocalAttrs(const Node& node, const Strategy& strategy,
                 const std::vector<TensorType>& local_results) {
  CHECK(local_results.size() == node.types.size());
  CHECK(local_results[0].rank() == node.types[0].rank());
  Attrs attrs = node.attrs;
  if (auto* broadcast = std::get_if<RowsAttrs>(&attrs)) {
    broadcast->rows = local_results[0].dims[0];
  }
  if (auto* broadcast = std::get_if<ModelsAttrs>(&attrs)) {
    broadcast->models = local_results[0].models;
  }
  if (!strategy.operands.empty() && strategy.operands[0].IsSplit(0)) {
    if (auto* mean = std::get_if<MeanAttrs>(&attrs)) {
      mean->rows = BatchRows(node);
    }
    if (auto* loss = std::get_if<LossGradAttrs>(&attrs)) {
      loss->rows = BatchRows(node);
    }
  }
  return attrs;
}

Strategies PartitionInput(const Node& node) { return SplitAlike(node); }
Strategies PartitionParam(const Node& node) { return SplitAlike(node); }
Strategies PartitionConstant(const Node& node) { return SplitAlike(node); }

Strategies PartitionGatherRows(const Node& node) { return Gather(node); }
// The columns; linear in table and rows together. Rows of a split table would
// have other numbers.
Strategies PartitionScatterAdd(const Node& node) {
  Strategies list = {All(node, R), {{P, R, P}, {P}}};
  if (node.types[0].rank() == 2) list.push_back({{S1, R, S1}, {S1}});
  return list;
}

Strategies PartitionGatherConvert(const Node& node) { return Gather(node); }
Strategies PartitionCast(const Node& node) { return SplitAlike(node); }
Strategies PartitionOneHot(const Node& node) { return ByRows(node); }

Strategies PartitionScale(const Node& node) {
  return SplitAlikeOrPartial(node);
}

Strategies PartitionMulScalar(const Node& node) {
  Strategies list = SplitAlikeOrPartial(node);
  for (Strategy& strategy : list) strategy.operands[1] = R;
  return list;
}

Strategies PartitionAdd(const Node& node) { return SplitAlikeOrPartial(node); }

// Linear in each operand alone.
Strategies PartitionMul(const Node& node) {
  Strategies list = SplitAlike(node);
  list.push_back({{P, R}, {P}});
  list.push_back({{R, P}, {P}});
  return list;
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

// What is split must not be an axis that holds the blocks.
Strategies PartitionBlockMatMul(const Node& node) {
  const auto& attrs = node.as<BlockMatMulAttrs>();
  Strategies list = {All(node, R), {{P, R}, {P}}, {{R, P}, {P}}};
  if (!attrs.trans_b) list.push_back({{R, S1}, {S1}});
  if (!attrs.trans_a && attrs.trans_b) list.push_back({{S1, S1}, {P}});
  return list;
}

Strategies PartitionAddBias(const Node& node) {
  return {All(node, R), {{S0, R}, {S0}}, {{S1, S0}, {S1}}, All(node, P)};
}

Strategies PartitionReduceRows(const Node& node) {
  return {All(node, R), {{S0}, {P}}, {{S1}, {S0}}, All(node, P)};
}

Strategies PartitionBroadcastRows(const Node& node) {
  return {All(node, R), {{R}, {S0}}, {{S0}, {S1}}, All(node, P)};
}

Strategies PartitionRelu(const Node& node) { return SplitAlike(node); }
Strategies PartitionTanh(const Node& node) { return SplitAlike(node); }
Strategies PartitionSigmoid(const Node& node) { return SplitAlike(node); }
Strategies PartitionGelu(const Node& node) { return SplitAlike(node); }
Strategies PartitionReluGrad(const Node& node) { return GradOf(node); }
Strategies PartitionTanhGrad(const Node& node) { return GradOf(node); }
Strategies PartitionSigmoidGrad(const Node& node) { return GradOf(node); }
Strategies PartitionGeluGrad(const Node& node) { return GradOf(node); }

Strategies PartitionSoftmax(const Node& node) { return ByRows(node); }

Strategies PartitionSoftmaxGrad(const Node& node) {
  return {All(node, R), All(node, S0), {{R, P}, {P}}};
}

Strategies PartitionNllLoss(const Node& node) { return SumOfRows(node); }
Strategies PartitionMinusOneHot(const Node& node) { return ByRows(node); }
Strategies PartitionCountCorrect(const Node& node) { return SumOfRows(node); }

// The rows of one block: `positives` counts columns.
Strategies PartitionSigmoidBce(const Node& node) {
  Strategies list = {All(node, R)};
  if (node.operands[2].type().dims[0] > 1) return list;
  Strategy& rows = list.emplace_back(Strategy{{S0, S0, R}, {P}});
  if (node.operands.size() > 3) rows.operands.push_back(R);
  return list;
}

Strategies PartitionSigmoidBceGrad(const Node& node) {
  Strategies list = PartitionSigmoidBce(node);
  if (list.size() > 1) list[1].results = {S0};
  return list;
}

// One step is too short to share out.
Strategies PartitionSgnsWindow(const Node& node) { return {All(node, R)}; }
Strategies PartitionHsWindow(const Node& node) { return {All(node, R)}; }
Strategies PartitionCbowWindow(const Node& node) { return {All(node, R)}; }

// A scalar has no rows.
Strategies PartitionMseLoss(const Node& node) {
  if (node.operands[0].type().rank() == 0) return {All(node, R)};
  return SumOfRows(node);
}

// Only rows are split: `rows` cannot say that there are more columns.
Strategies PartitionMseGrad(const Node& node) {
  Strategies list = {All(node, R), All(node, P)};
  if (node.types[0].rank() > 0) list.push_back(All(node, S0));
  return list;
}

Strategies PartitionSgdUpdate(const Node& node) { return Update(node); }
Strategies PartitionMomentumUpdate(const Node& node) { return Update(node); }
Strategies PartitionAdamUpdate(const Node& node) { return Update(node); }

Strategies PartitionBroadcastModels(const Node& node) {
  return SplitAlikeOrPartial(node);
}

// The axis it cuts stays whole.
Strategies PartitionSlice(const Node& node) {
  const auto& attrs = node.as<SliceAttrs>();
  Strategies list = {All(node, R)};
  if (node.types[0].rank() == 2) {
    list.push_back(All(node, attrs.axis == 0 ? S1 : S0));
  }
  if (node.types[0].dtype == DType::kF32) list.push_back(All(node, P));
  return list;
}

// Made by the partition, and not partitioned again.
Strategies PartitionExchange(const Node& node) { return {All(node, R)}; }

Strategies PartitionLossGrad(const Node& node) {
  const auto& attrs = node.as<LossGradAttrs>();
  Strategy rows{{S0}, {P, S0, P}};
  if (attrs.gather) rows.operands.push_back(R);  // labels of all rows
  rows.operands.push_back(S0);
  if (attrs.scaled) rows.operands.push_back(R);
  if (attrs.bias == BiasGrad::kUpdate) rows.operands.push_back(P);
  if (attrs.bias != BiasGrad::kNone) rows.results.push_back(P);
  return {All(node, R), rows};
}

// The batch by its indices.
Strategies PartitionGatherSparse(const Node& node) {
  return {All(node, R), {{R, S0}, {S0}}};
}

// As matmul, but never by k: a worker's columns of x are all over its rows.
Strategies PartitionSparseMatMul(const Node& node) {
  Strategies list = {All(node, R), {{S0, R}, {S0}}, {{R, S1}, {S1}}};
  if (node.as<SparseMatMulAttrs>().bias) {
    list[1].operands.push_back(R);
    list[2].operands.push_back(S0);
  }
  return list;
}

Strategies PartitionSparseOuter(const Node& node) {
  Strategies list = {All(node, R), {{R, S1}, {S1}}, {{S0, S0}, {P}}};
  if (node.as<SparseOuterAttrs>().accumulate) {
    list[1].operands.push_back(S1);
    list[2].operands.push_back(P);
  }
  return list;
}

Strategies PartitionActivationGrad(const Node& node) {
  const auto& attrs = node.as<ActivationGradAttrs>();
  // b has the placement of db, which is added to it.
  const auto with = [&attrs](Placement y, Placement dy, Placement dx,
                             Placement db) {
    Strategy strategy{{y, dy}, {dx}};
    if (attrs.bias == BiasGrad::kUpdate) strategy.operands.push_back(db);
    if (attrs.bias != BiasGrad::kNone) strategy.results.push_back(db);
    return strategy;
  };
  return {with(R, R, R, R), with(S0, S0, S0, P), with(S1, S1, S1, S0),
          with(R, P, P, P)};
}

}  // namespace onestep
