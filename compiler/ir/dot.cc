// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/dot.h"

#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/text.h"

namespace onestep {
namespace {

constexpr char kStyle[] =
    "  graph [fontname=Helvetica, labeljust=l, nodesep=0.2, ranksep=0.3];\n"
    "  node [fontname=Helvetica, height=0.3];\n"
    "  edge [fontname=Helvetica, fontsize=11, arrowsize=0.7];\n";
constexpr size_t kMaxLine = 40;  // characters of a label, about

const char* ColorOf(Phase phase) {
  switch (phase) {
    case Phase::kNone:
      return "white";
    case Phase::kForward:
      return "lightblue";
    case Phase::kLoss:
      return "lightyellow";
    case Phase::kBackward:
      return "lightpink";
    case Phase::kUpdate:
      return "lightgreen";
  }
  return "white";
}

std::string Quote(const std::string& text) {
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(text,
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

// "%7 = matmul\n{trans_a=true}\nmatmul + add_bias"
std::string LabelOf(const Graph& graph, const Node& node, Value first) {
  const std::string name = graph.NameOf(first);
  if (node.def().Has(kLeaf)) return name;
  std::string label =
      absl::StrCat(name.substr(0, name.find('#')), " = ", node.op());
  const std::string attrs = PrintAttrs(node.kind, node.attrs);
  if (!attrs.empty()) absl::StrAppend(&label, "\n", attrs);
  if (!node.fused_from.empty()) label += "\n";
  size_t line = label.size();  // where the last one begins
  for (size_t i = 0; i < node.fused_from.size(); ++i) {
    if (i > 0) label += " + ";
    if (label.size() - line > kMaxLine) {
      label += "\n";
      line = label.size();
    }
    label += node.fused_from[i];
  }
  return label;
}

// Of the group that each node is in.
std::unordered_map<const Node*, int> GroupOfNode(
    const std::vector<DotGroup>& groups) {
  std::unordered_map<const Node*, int> group_of;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const Node* node : groups[g].nodes) {
      group_of.try_emplace(node, static_cast<int>(g));
    }
  }
  return group_of;
}

std::string NodeStatement(const Graph& graph, Node& node, int id) {
  return absl::StrCat(
      "n", id, " [label=", Quote(LabelOf(graph, node, node.result())),
      ", shape=box, style=filled, fillcolor=", ColorOf(node.phase),
      ", class=", ToString(node.phase), "];\n");
}

class DotPrinter {
 public:
  DotPrinter(const Graph& graph, const std::vector<DotGroup>& groups)
      : graph_(graph), groups_(groups), grouped_(groups.size()) {}

  std::string Print() {
    const std::unordered_map<const Node*, int> group_of = GroupOfNode(groups_);
    for (const auto& node : graph_.nodes()) {
      if (node->def().Has(kLeaf)) continue;
      const int id = ids_[node.get()] = static_cast<int>(ids_.size());
      const std::string statement = NodeStatement(graph_, *node, id);
      const auto group = group_of.find(node.get());
      if (group != group_of.end()) {
        absl::StrAppend(&grouped_[group->second], "    ", statement);
      } else {
        absl::StrAppend(&free_, "  ", statement);
      }
      for (Value operand : node->operands) Edge(operand, absl::StrCat("n", id));
    }
    int out_id = 0;
    for (const Output& out : graph_.outputs()) {
      const std::string id = absl::StrCat("out", out_id++);
      const char* kind = out.kind == Output::kUpdate ? "update " : "result ";
      absl::StrAppend(&free_, "  ", id,
                      " [label=", Quote(absl::StrCat(kind, out.name)),
                      ", shape=plaintext, class=output];\n");
      Edge(out.value, id);
    }
    std::string frames;
    for (size_t g = 0; g < groups_.size(); ++g) {
      absl::StrAppend(&frames, "  subgraph cluster_", g,
                      " {\n    label=", Quote(groups_[g].label),
                      "; class=group", g, ";\n", grouped_[g], "  }\n");
    }
    return absl::StrCat("digraph onestep {\n", kStyle, frames, free_, edges_,
                        "}\n");
  }

 private:
  void Edge(Value from, const std::string& to) {
    absl::StrAppend(&edges_, "  ", Source(from), " -> ", to,
                    " [label=", Quote(from.type().ToString()), "];\n");
  }

  std::string Source(Value value) {
    if (!value.node->def().Has(kLeaf)) {
      return absl::StrCat("n", ids_.at(value.node));
    }
    const std::string id = absl::StrCat("leaf", leaves_++);
    absl::StrAppend(&free_, "  ", id, " [label=", Quote(graph_.NameOf(value)),
                    ", shape=ellipse, class=leaf];\n");
    return id;
  }

  const Graph& graph_;
  const std::vector<DotGroup>& groups_;
  std::unordered_map<const Node*, int> ids_;
  int leaves_ = 0;
  std::vector<std::string> grouped_;
  std::string free_, edges_;
};

}  // namespace

std::string PrintDot(const Graph& graph, const std::vector<DotGroup>& groups) {
  return DotPrinter(graph, groups).Print();
}

}  // namespace onestep
