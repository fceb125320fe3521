// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/dot.h"

#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/text.h"

namespace onestep {
namespace {

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
      absl::StrCat(name.substr(0, name.find('#')), " = ", node.def().name);
  const std::string attrs = PrintAttrs(node.kind, node.attrs);
  if (!attrs.empty()) absl::StrAppend(&label, "\n", attrs);
  if (!node.fused_from.empty()) {
    absl::StrAppend(&label, "\n", absl::StrJoin(node.fused_from, " + "));
  }
  return label;
}

}  // namespace

std::string PrintDot(const Graph& graph) {
  std::string dot = "digraph onestep {\n";
  std::unordered_map<const Node*, int> ids;
  auto edge = [&](Value from, const std::string& to) {
    absl::StrAppend(&dot, "  n", ids[from.node], " -> ", to,
                    " [label=", Quote(from.type().ToString()), "];\n");
  };
  for (const auto& node : graph.nodes()) {
    const int id = static_cast<int>(ids.size());
    ids[node.get()] = id;
    absl::StrAppend(&dot, "  n", id,
                    " [label=", Quote(LabelOf(graph, *node, node->result())),
                    node->def().Has(kLeaf)
                        ? ", shape=ellipse"
                        : absl::StrCat(", shape=box, style=filled, fillcolor=",
                                       ColorOf(node->phase)),
                    "];\n");
    for (Value operand : node->operands) edge(operand, absl::StrCat("n", id));
  }
  int out_id = 0;
  for (const Output& out : graph.outputs()) {
    const std::string id = absl::StrCat("out", out_id++);
    const char* kind = out.kind == Output::kUpdate ? "update " : "result ";
    absl::StrAppend(&dot, "  ", id,
                    " [label=", Quote(absl::StrCat(kind, out.name)),
                    ", shape=plaintext];\n");
    edge(out.value, id);
  }
  dot += "}\n";
  return dot;
}

}  // namespace onestep
