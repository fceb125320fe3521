// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// The types of leaves and constants are given, not inferred.
bool HasGivenType(OpKind kind) {
  return GetOpDef(kind).Has(kLeaf) || kind == OpKind::kConstant;
}

std::vector<TensorType> TypesOf(const std::vector<Value>& values) {
  std::vector<TensorType> types;
  types.reserve(values.size());
  for (const Value& v : values) types.push_back(v.type());
  return types;
}

// The first model axis of `types`; 0: none has one.
int64_t ModelsIn(const std::vector<TensorType>& types) {
  for (const TensorType& type : types) {
    if (type.models > 0) return type.models;
  }
  return 0;
}

absl::Status CheckModels(OpKind kind, const Attrs& attrs, int64_t models,
                         const std::vector<TensorType>& types) {
  const std::vector<ModelAxis> axes =
      GetOpDef(kind).rules.batch(static_cast<int>(types.size()), attrs);
  for (size_t i = 0; i < types.size(); ++i) {
    const bool shared = types[i].models == 0;
    std::string want;
    if (axes[i] == ModelAxis::kShared && !shared) {
      want = "shared by the models";
    } else if (axes[i] == ModelAxis::kPerModel && shared) {
      want = absl::StrCat("of ", models, " models");
    } else if (!shared && types[i].models != models) {
      want = absl::StrCat("of ", models, " models, as another is");
    }
    if (want.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(kind, attrs), ": want operand ", i, " ", want,
                     ", got ", types[i].ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorType>> Infer(
    OpKind kind, const std::vector<Value>& operands, const Attrs& attrs) {
  const OpDef& def = GetOpDef(kind);
  const int n = static_cast<int>(operands.size());
  if (n < def.min_operands || n > def.max_operands) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(kind, attrs), ": want ", def.min_operands,
                     def.max_operands > def.min_operands
                         ? absl::StrCat(" to ", def.max_operands)
                         : "",
                     " operands, got ", n));
  }
  if (attrs.index() != def.default_attrs.index()) {
    return absl::InvalidArgumentError(
        absl::StrCat(def.name, ": attributes of another op"));
  }
  std::vector<TensorType> types = TypesOf(operands);
  const int64_t models = ModelsIn(types);
  if (models == 0) return def.rules.infer(types, attrs);
  RETURN_IF_ERROR(CheckModels(kind, attrs, models, types));
  for (TensorType& type : types) type.models = 0;
  ASSIGN_OR_RETURN(types, def.rules.infer(types, attrs));
  for (TensorType& type : types) type.models = models;
  return types;
}

}  // namespace

const char* ToString(Phase phase) {
  switch (phase) {
    case Phase::kNone:
      return "none";
    case Phase::kForward:
      return "forward";
    case Phase::kLoss:
      return "loss";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "?";
}

OpCost CostOf(const Node& node) {
  OpCost cost = node.def().rules.cost(node);
  if (node.models() > 0) cost.flops *= static_cast<double>(node.models());
  return cost;
}

int64_t ModelsOf(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->models() > 0) return node->models();
  }
  return 0;
}

bool MayOverwrite(Value value, Value operand) {
  const Node& node = *value.node;
  if (value.type() != operand.type()) return false;
  bool reads = false;
  for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) {
    if (node.operands[i] != operand) continue;
    if (!node.def().rules.alias(node, value.index, i)) return false;
    reads = true;
  }
  return reads;
}

std::optional<RowLookup> LookupOf(const Node& node) {
  const LookupFn lookup = node.def().rules.lookup;
  return lookup == nullptr ? std::nullopt : lookup(node);
}

BiasGrad* BiasGradOf(Attrs& attrs) {
  if (auto* loss = std::get_if<LossGradAttrs>(&attrs)) return &loss->bias;
  auto* const grad = std::get_if<ActivationGradAttrs>(&attrs);
  return grad == nullptr ? nullptr : &grad->bias;
}

Value BiasGradResult(Node& node) {
  return node.result(static_cast<int>(node.types.size()) - 1);
}

bool* AccumulateOf(Attrs& attrs) {
  if (auto* matmul = std::get_if<MatMulAttrs>(&attrs)) {
    return &matmul->accumulate;
  }
  auto* const outer = std::get_if<SparseOuterAttrs>(&attrs);
  return outer == nullptr ? nullptr : &outer->accumulate;
}

bool IsConstantOne(Value value) {
  return value && value.node->kind == OpKind::kConstant &&
         value.node->as<ConstantAttrs>().value == 1.0f;
}

Graph Graph::Clone() const {
  Graph copy;
  std::map<const Node*, Node*> map;
  const auto mapped = [&map](Value v) {
    return v ? Value{map.at(v.node), v.index} : v;
  };
  for (const auto& node : nodes_) {
    auto twin = std::make_unique<Node>(*node);
    for (Value& v : twin->operands) v = mapped(v);
    map[node.get()] = twin.get();
    copy.nodes_.push_back(std::move(twin));
  }
  copy.outputs_ = outputs_;
  for (Output& out : copy.outputs_) out.value = mapped(out.value);
  return copy;
}

Node* Graph::Insert(std::unique_ptr<Node> node) {
  Node* const raw = node.get();
  const auto at = insertion_point_ == nullptr
                      ? nodes_.end()
                      : nodes_.begin() + IndexOf(insertion_point_);
  nodes_.insert(at, std::move(node));
  return raw;
}

Value Graph::AddInput(std::string name, TensorType type) {
  auto node = std::make_unique<Node>();
  node->kind = OpKind::kInput;
  node->attrs = NameAttrs{std::move(name)};
  node->types = {std::move(type)};
  return Insert(std::move(node))->result();
}

Value Graph::AddParam(std::string name, TensorType type) {
  const Value value = AddInput(std::move(name), std::move(type));
  value.node->kind = OpKind::kParam;
  return value;
}

Value Graph::AddConstant(float value, TensorType type) {
  auto node = std::make_unique<Node>();
  node->kind = OpKind::kConstant;
  node->attrs = ConstantAttrs{value};
  node->types = {std::move(type)};
  node->phase = phase_;
  return Insert(std::move(node))->result();
}

absl::StatusOr<Node*> Graph::AddNode(OpKind kind, std::vector<Value> operands,
                                     Attrs attrs) {
  CHECK(!HasGivenType(kind));
  ASSIGN_OR_RETURN(std::vector<TensorType> types, Infer(kind, operands, attrs));
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->operands = std::move(operands);
  node->attrs = std::move(attrs);
  node->types = std::move(types);
  node->phase = phase_;
  return Insert(std::move(node));
}

Value Graph::Add(OpKind kind, std::vector<Value> operands) {
  return Add(kind, std::move(operands), GetOpDef(kind).default_attrs);
}

// A constant is made anew for the models.
void Graph::BroadcastOperands(OpKind kind, const Attrs& attrs,
                              std::vector<Value>& operands) {
  const int64_t models = ModelsIn(TypesOf(operands));
  if (models == 0) return;
  const std::vector<ModelAxis> axes =
      GetOpDef(kind).rules.batch(static_cast<int>(operands.size()), attrs);
  for (size_t i = 0; i < operands.size(); ++i) {
    Value& x = operands[i];
    if (axes[i] != ModelAxis::kPerModel || x.type().models > 0) continue;
    if (x.node->kind == OpKind::kConstant) {
      TensorType type = x.type();
      type.models = models;
      x = AddConstant(x.node->as<ConstantAttrs>().value, std::move(type));
    } else {
      x = Add(OpKind::kBroadcastModels, {x}, ModelsAttrs{models});
    }
  }
}

absl::Status Graph::InferAnew(Node* node) {
  const Node* const before = insertion_point_;
  const Phase phase = std::exchange(phase_, node->phase);
  insertion_point_ = node;
  BroadcastOperands(node->kind, node->attrs, node->operands);
  insertion_point_ = before;
  phase_ = phase;
  ASSIGN_OR_RETURN(node->types, Infer(node->kind, node->operands, node->attrs));
  return absl::OkStatus();
}

Value Graph::Add(OpKind kind, std::vector<Value> operands, Attrs attrs) {
  BroadcastOperands(kind, attrs, operands);
  absl::StatusOr<Node*> node =
      AddNode(kind, std::move(operands), std::move(attrs));
  if (!node.ok()) {
    std::fprintf(stderr, "%s\n", node.status().ToString().c_str());
  }
  CHECK(node.ok());
  return (*node)->result();
}

void Graph::AddResult(std::string name, Value value) {
  outputs_.push_back({Output::kResult, std::move(name), value});
}

void Graph::AddUpdate(Value param, Value new_value) {
  CHECK(param.node->kind == OpKind::kParam);
  outputs_.push_back({Output::kUpdate, param.node->name(), new_value});
}

int Graph::IndexOf(const Node* node) const {
  const auto it = std::find_if(nodes_.begin(), nodes_.end(),
                               [&](const auto& n) { return n.get() == node; });
  CHECK(it != nodes_.end());
  return static_cast<int>(it - nodes_.begin());
}

std::vector<Node*> Graph::Users(Value value) const {
  std::vector<Node*> users;
  for (const auto& node : nodes_) {
    if (std::count(node->operands.begin(), node->operands.end(), value) > 0) {
      users.push_back(node.get());
    }
  }
  return users;
}

int Graph::CountUses(Value value) const {
  int64_t uses = 0;
  for (const auto& node : nodes_) {
    uses += std::count(node->operands.begin(), node->operands.end(), value);
  }
  for (const Output& out : outputs_) uses += out.value == value;
  return static_cast<int>(uses);
}

bool Graph::IsOutput(Value value) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [&](const Output& out) { return out.value == value; });
}

Node* Graph::FindLeaf(absl::string_view name) const {
  for (const auto& node : nodes_) {
    if (node->def().Has(kLeaf) && node->name() == name) return node.get();
  }
  return nullptr;
}

Value Graph::UpdateOf(const Node* param) const {
  for (const Output& out : outputs_) {
    if (out.kind == Output::kUpdate && out.name == param->name()) {
      return out.value;
    }
  }
  return {};
}

std::string Graph::NameOf(Value value) const {
  if (value.node->def().Has(kLeaf)) return "%" + value.node->name();
  int number = 0;
  for (const auto& node : nodes_) {
    if (node.get() == value.node) break;
    number += !node->def().Has(kLeaf);
  }
  return value.node->types.size() == 1
             ? absl::StrCat("%", number)
             : absl::StrCat("%", number, "#", value.index);
}

void Graph::ReplaceUses(Value from, Value to) {
  for (const auto& node : nodes_) {
    std::replace(node->operands.begin(), node->operands.end(), from, to);
  }
  for (Output& out : outputs_) {
    if (out.value == from) out.value = to;
  }
}

void Graph::Erase(Node* node) {
  for (size_t i = 0; i < node->types.size(); ++i) {
    CHECK(CountUses(node->result(static_cast<int>(i))) == 0);
  }
  const int at = IndexOf(node);
  if (insertion_point_ == node) {
    insertion_point_ = at + 1 < size() ? nodes_[at + 1].get() : nullptr;
  }
  nodes_.erase(nodes_.begin() + at);
}

void Graph::MoveBefore(Node* node, const Node* position) {
  if (node == position) return;
  const int from = IndexOf(node);
  std::unique_ptr<Node> moved = std::move(nodes_[from]);
  nodes_.erase(nodes_.begin() + from);
  nodes_.insert(nodes_.begin() + IndexOf(position), std::move(moved));
}

void Graph::Reorder(const std::vector<Node*>& order) {
  CHECK(order.size() == nodes_.size());
  std::map<const Node*, std::unique_ptr<Node>> nodes;
  for (auto& node : nodes_) {
    Node* const raw = node.get();
    nodes[raw] = std::move(node);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    nodes_[i] = std::move(nodes.at(order[i]));
  }
}

// The types of `node`, which has operands as they are defined. `models` is that
// of the values before; 0: none had a model axis.
absl::Status Graph::VerifyTypes(Node& node, int64_t& models) const {
  const auto broken = [&](const auto&... parts) {
    return absl::InternalError(absl::StrCat(
        "graph: ", node.op(), " ", NameOf(node.result()), ": ", parts...));
  };
  if (models == 0) models = node.models();
  if (node.models() > 0 && node.models() != models) {
    return broken("want ", models, " models as another value, got ",
                  node.types[0].ToString());
  }
  if (HasGivenType(node.kind)) {
    for (const int64_t d : node.types[0].dims) {
      if (d < 1) {
        return broken("want sizes from 1, got ", node.types[0].ToString());
      }
    }
    return absl::OkStatus();
  }
  const auto types = Infer(node.kind, node.operands, node.attrs);
  if (!types.ok()) {
    return absl::InternalError(
        absl::StrCat("graph: ", types.status().message()));
  }
  if (*types != node.types) {
    return broken("its type is not the inferred one");
  }
  return absl::OkStatus();
}

absl::Status Graph::Verify() const {
  const auto broken = [](const auto&... parts) {
    return absl::InternalError(absl::StrCat("graph: ", parts...));
  };
  std::set<const Node*> seen;
  std::set<std::string> names;
  int64_t models = 0;
  for (const auto& node : nodes_) {
    for (const Value& v : node->operands) {
      if (!v || seen.count(v.node) == 0) {
        return broken(node->op(), " ", NameOf(node->result()),
                      ": an operand is not defined before it");
      }
      if (v.index < 0 || v.index >= std::ssize(v.node->types)) {
        return broken(node->op(), ": operand ", NameOf(v),
                      " has no such result");
      }
    }
    if (node->def().Has(kLeaf)) {
      if (!names.insert(node->name()).second) {
        return broken("two leaves named ", node->name());
      }
    }
    RETURN_IF_ERROR(VerifyTypes(*node, models));
    seen.insert(node.get());
  }
  std::set<std::string> updated;
  for (const Output& out : outputs_) {
    if (!out.value || seen.count(out.value.node) == 0) {
      return broken("output ", out.name, " is not defined");
    }
    if (out.kind == Output::kResult) {
      if (names.insert(out.name).second) continue;
      return broken("result ", out.name, " has the name of another value");
    }
    const Node* const param = FindLeaf(out.name);
    if (param == nullptr || param->kind != OpKind::kParam) {
      return broken("update of ", out.name, ", which is no param");
    }
    if (param->types[0] != out.value.type()) {
      return broken("update of ", out.name, ": want ",
                    param->types[0].ToString(), ", got ",
                    out.value.type().ToString());
    }
    if (!updated.insert(out.name).second) {
      return broken("two updates of ", out.name);
    }
  }
  return absl::OkStatus();
}

}  // namespace onestep
