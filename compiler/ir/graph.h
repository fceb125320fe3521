// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_IR_GRAPH_H_
#define ONESTEP_COMPILER_IR_GRAPH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/op.h"

namespace onestep {

// Where in the train step a node belongs; for people and profiles only.
enum class Phase : uint8_t { kNone, kForward, kLoss, kBackward, kUpdate };
const char* ToString(Phase phase);

struct Node {
  OpKind kind;
  std::vector<Value> operands;
  Attrs attrs;
  std::vector<TensorType> types;  // one per result
  Phase phase = Phase::kNone;
  // The textbook ops this node was fused from, in order; empty: itself.
  std::vector<std::string> fused_from;
  // Positions, in the graph that the pipeline was given, of the nodes whose
  // work this one does; empty: a pass made it anew.
  std::vector<int> origins;

  const OpDef& def() const { return GetOpDef(kind); }
  // The op's name in the text form: "matmul", "relu".
  std::string op() const { return onestep::NameOf(kind, attrs); }
  Value result(int i = 0) { return Value{this, i}; }
  template <typename A>
  const A& as() const {
    return std::get<A>(attrs);
  }
  // Of an input or param.
  const std::string& name() const { return as<NameAttrs>().name; }
  // How many models it computes for; 0: its results are shared by all.
  int64_t models() const { return types[0].models; }
};

inline const TensorType& Value::type() const { return node->types[index]; }

// What leaves the graph. An update is the new value of param `name`, written
// to the param's memory when the step ends; a result is read from outside.
struct Output {
  enum Kind : uint8_t { kResult, kUpdate };
  Kind kind;
  std::string name;
  Value value;
};

// A train step (or any computation) in SSA form.
//
// Invariants, checked by Verify: nodes are in topological order, which is
// also the order of execution; types are what the infer rules say, with a model
// axis where an operand has one; what has one has as many models; names of
// inputs, params and results are unique; sizes are at least 1; a param is
// updated at most once, by a value of its own type. Node addresses are stable
// until the node is erased.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph Clone() const;

  // ---- building: appends at the end, or before the insertion point ----
  Value AddInput(std::string name, TensorType type);
  Value AddParam(std::string name, TensorType type);
  // InvalidArgument with the op's message when the operands do not fit.
  absl::StatusOr<Node*> AddNode(OpKind kind, std::vector<Value> operands,
                                Attrs attrs);
  // For operands known to fit: CHECKs, and gives result 0. A shared operand
  // that is wanted per model is broadcast.
  Value Add(OpKind kind, std::vector<Value> operands);
  Value Add(OpKind kind, std::vector<Value> operands, Attrs attrs);
  // f32 tensor filled with `value`.
  Value AddConstant(float value, TensorType type);
  void AddResult(std::string name, Value value);
  void AddUpdate(Value param, Value new_value);
  // New nodes get this phase.
  void set_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  // New nodes go before `node`; nullptr: at the end.
  void set_insertion_point(const Node* node) { insertion_point_ = node; }

  // ---- reading ----
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  int IndexOf(const Node* node) const;  // position in nodes()
  // Nodes that read `value`, in order, each once; outputs not counted.
  std::vector<Node*> Users(Value value) const;
  // Operand slots and outputs that name `value`.
  int CountUses(Value value) const;
  bool IsOutput(Value value) const;
  // The input or param of this name, or nullptr.
  Node* FindLeaf(absl::string_view name) const;
  // The param's new value, or no value when nothing updates it.
  Value UpdateOf(const Node* param) const;
  // "%w1", "%7", "%7#1": as in the text form. Linear in the graph's size.
  std::string NameOf(Value value) const;

  // ---- changing ----
  // Every use of `from`, outputs included, becomes `to`.
  void ReplaceUses(Value from, Value to);
  // The types of `node` by those of its operands, which are broadcast as by
  // Add. InvalidArgument when they do not fit.
  absl::Status InferAnew(Node* node);
  // Output i of outputs() becomes `value`.
  void SetOutput(int i, Value value) { outputs_[i].value = value; }
  // REQUIRES: no result of `node` has a use.
  void Erase(Node* node);
  // Moves `node` to just before `position`. The caller keeps the order legal.
  void MoveBefore(Node* node, const Node* position);
  // REQUIRES: `order` has every node once, each after its operands.
  void Reorder(const std::vector<Node*>& order);

  // Internal names the broken invariant.
  absl::Status Verify() const;

 private:
  Node* Insert(std::unique_ptr<Node> node);
  absl::Status VerifyTypes(Node& node, int64_t& models) const;
  void BroadcastOperands(OpKind kind, const Attrs& attrs,
                         std::vector<Value>& operands);

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Output> outputs_;
  Phase phase_ = Phase::kNone;
  const Node* insertion_point_ = nullptr;
};

// What a gradient rule is given.
struct GradContext {
  Graph& graph;  // the rule appends to it
  Node& node;
  // Gradient of the loss with respect to each result; no value: none flows.
  std::vector<Value> dys;
  // Whether operand i's gradient is wanted.
  std::vector<bool> wanted;

  Value operand(int i) const { return node.operands[i]; }
};

// What the node computes and moves in one execution, for all its models.
OpCost CostOf(const Node& node);

// Models of the graph's values; 0: there is no model axis.
int64_t ModelsOf(const Graph& graph);

// Whether the node of `value` may write it over `operand`, which it reads, so
// far as the op is concerned; whether another node still wants the operand is
// for the caller to know.
bool MayOverwrite(Value value, Value operand);

// The operands by which the node looks rows of a table up, where it does.
std::optional<RowLookup> LookupOf(const Node& node);

// The attribute of an op that can make a bias gradient besides, or nullptr.
BiasGrad* BiasGradOf(Attrs& attrs);
// The result that is the bias gradient, or the new bias.
// REQUIRES: the op has the attribute, and it is not none.
Value BiasGradResult(Node& node);
// The attribute of an op that can add its result to its last operand, or
// nullptr.
bool* AccumulateOf(Attrs& attrs);

// True when `value` is a constant 1: the seed of a reverse sweep, by which
// rules need not multiply.
bool IsConstantOne(Value value);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_GRAPH_H_
