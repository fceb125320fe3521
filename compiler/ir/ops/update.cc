// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/update.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// (w, dw, `states` tensors of w's shape, then scalars f32[]) -> w and states.
// The last scalars are `hyper` ones or none: `decay` is then to be 0.
absl::StatusOr<Types> InferUpdate(OpKind kind, const std::string& want,
                                  const Types& in, int states, int hyper,
                                  float decay) {
  const int scalars = static_cast<int>(in.size()) - 2 - states;
  const int least = GetOpDef(kind).min_operands - 2 - states;
  Types types(2 + states, in[0]);
  types.insert(types.end(), scalars, F32({}));
  if (in[0].dtype != DType::kF32 || in != types ||
      (scalars != least && scalars != least + hyper)) {
    return Wrong(kind, want, in);
  }
  if (scalars > least && decay != 0) {
    return Wrong(kind, "weight_decay 0 beside the operand",
                 absl::StrCat("weight_decay=", decay));
  }
  return Types(1 + states, in[0]);
}

// Of an update whose last operand may be the weight decay.
double DecayFlops(const Node& node, float weight_decay) {
  return weight_decay != 0 || UpdateOp(node).reads_hypers() ? 2 : 0;
}

// All tensors alike; scalars are replicated.
Strategies PartitionUpdate(const Node& node) {
  Strategies list = SplitAlike(node);
  for (Strategy& strategy : list) {
    for (size_t i = 1; i < node.operands.size(); ++i) {
      if (node.operands[i].type().rank() == 0) strategy.operands[i] = R;
    }
  }
  return list;
}

// w' over w, and the new states over the old, which come after dw.
bool AliasUpdate(const Node&, int result, int operand) {
  return operand == (result == 0 ? 0 : result + 1);
}

absl::StatusOr<Types> InferSgdUpdate(const Types& in, const Attrs& attrs) {
  return InferUpdate(OpKind::kSgdUpdate,
                     "w, dw f32 of one shape, lr[, weight_decay] f32[]", in,
                     /*states=*/0, /*hyper=*/1,
                     std::get<SgdAttrs>(attrs).weight_decay);
}

OpCost CostSgdUpdate(const Node& node) {
  return PerElement(node,
                    2 + DecayFlops(node, node.as<SgdAttrs>().weight_decay));
}

absl::StatusOr<Types> InferMomentumUpdate(const Types& in, const Attrs& attrs) {
  return InferUpdate(
      OpKind::kMomentumUpdate,
      "w, dw, v f32 of one shape, lr[, momentum, weight_decay] f32[]", in,
      /*states=*/1, /*hyper=*/2, std::get<MomentumAttrs>(attrs).weight_decay);
}

OpCost CostMomentumUpdate(const Node& node) {
  const auto& attrs = node.as<MomentumAttrs>();
  return PerElement(node, 4 + (attrs.nesterov ? 2 : 0) +
                              DecayFlops(node, attrs.weight_decay));
}

absl::StatusOr<Types> InferAdamUpdate(const Types& in, const Attrs& attrs) {
  return InferUpdate(
      OpKind::kAdamUpdate,
      "w, dw, m, v f32 of one shape, lr, step[, weight_decay] f32[]", in,
      /*states=*/2, /*hyper=*/1, std::get<AdamAttrs>(attrs).weight_decay);
}

// m' 3, v' 4, both hats 2; sqrt, add, divide, multiply, subtract.
OpCost CostAdamUpdate(const Node& node) {
  return PerElement(node,
                    14 + DecayFlops(node, node.as<AdamAttrs>().weight_decay));
}

}  // namespace

const OpRules kSgdUpdateRules = {
    .infer = InferSgdUpdate,
    .grad = NotDifferentiated,
    .cost = CostSgdUpdate,
    .batch = AllPerModel,
    .partition = PartitionUpdate,
    .alias = AliasUpdate,
};

const OpRules kMomentumUpdateRules = {
    .infer = InferMomentumUpdate,
    .grad = NotDifferentiated,
    .cost = CostMomentumUpdate,
    .batch = AllPerModel,
    .partition = PartitionUpdate,
    .alias = AliasUpdate,
};

// The step, operand 5, is shared by all models.
const OpRules kAdamUpdateRules = {
    .infer = InferAdamUpdate,
    .grad = NotDifferentiated,
    .cost = CostAdamUpdate,
    .batch = AllPerModelBut<5, ModelAxis::kShared>,
    .partition = PartitionUpdate,
    .alias = AliasUpdate,
};

namespace {

UpdateRule RuleOf(OpKind kind) {
#define RULE(Rule) \
  if (kind == OpKind::k##Rule##Update) return UpdateRule::k##Rule;
  ONESTEP_UPDATE_RULES(RULE)
#undef RULE
  CHECK(false);
}

// Of attributes: the float ones are hyper-parameters, a bool one is the flag.
struct AttributeReader {
  UpdateOp& op;

  void operator()(const std::string&, float value) const {
    op.hypers.push_back({value, {}});
  }
  void operator()(const std::string&, bool value) const { op.flag = value; }
  template <typename T>
  void operator()(const std::string&, const T&) const {
    CHECK(false);
  }
};

}  // namespace

UpdateOp::UpdateOp(const Node& node)
    : rule(RuleOf(node.kind)), w(node.operands[0]), dw(node.operands[1]) {
  const OpDef& def = node.def();
  const size_t states_end = 1 + node.types.size();
  states.assign(node.operands.begin() + 2, node.operands.begin() + states_end);
  lr = node.operands[states_end];
  const size_t hypers_begin = def.min_operands;
  if (states_end + 1 < hypers_begin) step = node.operands[states_end + 1];
  std::visit([this](auto attrs) { attrs.Visit(AttributeReader{*this}); },
             node.attrs);
  for (size_t i = hypers_begin; i < node.operands.size(); ++i) {
    hypers[hypers.size() - (def.max_operands - i)].at = node.operands[i];
  }
}

bool HasWeightDecay(const Node& sgd_update) {
  return UpdateOp(sgd_update).reads_hypers() ||
         sgd_update.as<SgdAttrs>().weight_decay != 0;
}

}  // namespace onestep
