// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/activation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"

namespace onestep {
namespace {

std::string GradName(Activation activation) {
  return absl::StrCat(ToString(activation), "_grad");
}

// ---- activation -------------------------------------------------------------

absl::StatusOr<Types> InferActivation(const Types& in, const Attrs& attrs) {
  const auto activation = std::get<ActivationAttrs>(attrs).activation;
  if (activation == Activation::kNone) {
    return Wrong(OpKind::kActivation, "an activation", "none");
  }
  return InferUnary(ToString(activation), in);
}

// dx = dy act'(x), from act's result or, where that does not do, its operand.
absl::StatusOr<Values> GradActivation(const GradContext& ctx) {
  const auto activation = ctx.node.as<ActivationAttrs>().activation;
  const Value saved = ActivationGradReadsOperand(activation)
                          ? ctx.operand(0)
                          : ctx.node.result();
  return Values{AddActivationGrad(ctx.graph, activation, saved, ctx.dys[0])};
}

OpCost CostActivation(const Node& node) {
  return PerElement(node,
                    ActivationFlops(node.as<ActivationAttrs>().activation));
}

std::vector<OpName> ActivationNames() {
  std::vector<OpName> names;
  for (const Activation a : kAllActivations) {
    names.push_back({ToString(a), ActivationAttrs{a}});
  }
  return names;
}

// ---- activation_grad --------------------------------------------------------

// The plain gradient, without a bias, takes tensors of any shape.
absl::StatusOr<Types> InferActivationGrad(const Types& in, const Attrs& attrs) {
  const auto& grad = std::get<ActivationGradAttrs>(attrs);
  if (grad.activation == Activation::kNone) {
    return Wrong(OpKind::kActivationGrad, "an activation", "none");
  }
  const std::string want =
      ActivationGradReadsOperand(grad.activation) ? "x, dy" : "y, dy";
  if (grad.bias == BiasGrad::kNone && in.size() == 2) {
    return InferBinary(GradName(grad.activation), want, in);
  }
  const bool update = grad.bias == BiasGrad::kUpdate;
  if (IsMatrix(in[0])) {
    const TensorType bias = F32({in[0].dims[1]});
    Types types = {in[0], in[0]};
    if (update) types.push_back(bias);
    if (in == types) return Types{in[0], bias};
  }
  return Wrong(OpKind::kActivationGrad,
               absl::StrCat(want, " f32[B,C]", update ? ", b f32[C]" : ""), in);
}

OpCost CostActivationGrad(const Node& node) {
  const auto& attrs = node.as<ActivationGradAttrs>();
  return PerElement(node, ActivationGradFlops(attrs.activation) +
                              (attrs.bias != BiasGrad::kNone ? 1 : 0));
}

// Linear in dy. The bias has the placement of its gradient, which is added to
// it. Without a bias the shape may be any.
Strategies PartitionActivationGrad(const Node& node) {
  const auto& attrs = node.as<ActivationGradAttrs>();
  if (attrs.bias == BiasGrad::kNone) {
    Strategies list = SplitAlike(node);
    list.push_back({{R, P}, {P}});
    return list;
  }
  const auto with = [&attrs](Placement saved, Placement dy, Placement dx,
                             Placement db) {
    Strategy strategy{{saved, dy}, {dx, db}};
    if (attrs.bias == BiasGrad::kUpdate) strategy.operands.push_back(db);
    return strategy;
  };
  return {with(R, R, R, R), with(S0, S0, S0, P), with(S1, S1, S1, S0),
          with(R, P, P, P)};
}

// dx over saved or dy, and the new bias over the old.
bool AliasActivationGrad(const Node&, int result, int operand) {
  return result == ActivationGradOp::kDx ? operand < 2 : operand == 2;
}

std::vector<OpName> ActivationGradNames() {
  std::vector<OpName> names;
  for (const Activation a : kAllActivations) {
    names.push_back({GradName(a), ActivationGradAttrs{a}});
  }
  return names;
}

}  // namespace

const OpRules kActivationRules = {
    .infer = InferActivation,
    .grad = GradActivation,
    .cost = CostActivation,
    .batch = AllPerModel,
    .partition = SplitAlike,
    .alias = ElementwiseInPlace,
    .names = ActivationNames,
};

const OpRules kActivationGradRules = {
    .infer = InferActivationGrad,
    .grad = NotDifferentiated,
    .cost = CostActivationGrad,
    .batch = AllPerModel,
    .partition = PartitionActivationGrad,
    .alias = AliasActivationGrad,
    .names = ActivationGradNames,
};

ActivationGradOp::ActivationGradOp(const Node& node)
    : attrs(node.as<ActivationGradAttrs>()),
      saved(node.operands[0]),
      dy(node.operands[1]) {
  if (attrs.bias == BiasGrad::kUpdate) bias = node.operands[2];
}

Value AddActivation(Graph& graph, Activation activation, Value x) {
  return graph.Add(OpKind::kActivation, {x}, ActivationAttrs{activation});
}

Value AddActivationGrad(Graph& graph, Activation activation, Value saved,
                        Value dy) {
  return graph.Add(OpKind::kActivationGrad, {saved, dy},
                   ActivationGradAttrs{activation});
}

const char* ToString(BiasGrad bias) {
  switch (bias) {
    case BiasGrad::kNone:
      return "none";
    case BiasGrad::kGrad:
      return "grad";
    case BiasGrad::kUpdate:
      return "update";
  }
  return "?";
}

}  // namespace onestep
