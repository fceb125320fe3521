// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/emulated_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

void AppendDot(const EmulatedGraph& graph, const std::string& prefix,
               std::string& dot) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const EmulatedNode& node = graph.nodes[i];
    const std::string id = absl::StrCat(prefix, i);
    absl::StrAppend(&dot, "  ", id, " [label=\"", node.work.kind,
                    node.work.name.empty() ? "" : " ", node.work.name,
                    "\"];\n");
    for (const EmulatedNode::Edge& edge : node.edges) {
      absl::StrAppend(&dot, "  ", prefix, edge.from, " -> ", id,
                      edge.programmatic ? " [style=dashed]" : "", ";\n");
    }
    if (node.inside == nullptr) continue;
    absl::StrAppend(&dot, "  subgraph cluster_", id, " {\n");
    AppendDot(*node.inside, absl::StrCat(id, "_"), dot);
    absl::StrAppend(&dot, "  }\n");
  }
}

}  // namespace

std::shared_ptr<EmulatedGraph> EmulatedGraph::Clone() const {
  auto clone = std::make_shared<EmulatedGraph>();
  clone->nodes = nodes;
  for (EmulatedNode& node : clone->nodes) {
    if (node.inside != nullptr) node.inside = node.inside->Clone();
  }
  return clone;
}

bool EmulatedGraph::Uses(uintptr_t begin, uintptr_t end) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const EmulatedNode& node) {
    return (node.inside != nullptr && node.inside->Uses(begin, end)) ||
           std::any_of(node.work.addresses.begin(), node.work.addresses.end(),
                       [&](uintptr_t a) { return begin <= a && a < end; });
  });
}

std::string EmulatedGraph::ToDot() const {
  std::string dot = "digraph {\n";
  AppendDot(*this, "n", dot);
  return dot + "}\n";
}

EmulatedGraphRun::EmulatedGraphRun(const EmulatedGraph& graph)
    : graph_(graph),
      dependents_(graph.nodes.size()),
      waits_for_(graph.nodes.size()) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    waits_for_[i] = static_cast<int>(graph.nodes[i].edges.size());
    if (waits_for_[i] == 0) ready_.push_back(static_cast<int>(i));
    for (const EmulatedNode::Edge& edge : graph.nodes[i].edges) {
      dependents_[edge.from].push_back(static_cast<int>(i));
    }
  }
}

absl::Status EmulatedGraphRun::Step(
    EmulatedRandom& random,
    absl::FunctionRef<absl::Status(const EmulatedWork&)> run) {
  CHECK(!done());
  const int index = ready_[random() % ready_.size()];
  const EmulatedNode& node = graph_.nodes[index];
  if (node.inside == nullptr) {
    RETURN_IF_ERROR(run(node.work));
    Finish(index);
    return absl::OkStatus();
  }
  std::unique_ptr<EmulatedGraphRun>& inside = inside_[index];
  if (inside == nullptr) {
    inside = std::make_unique<EmulatedGraphRun>(*node.inside);
  }
  if (!inside->done()) RETURN_IF_ERROR(inside->Step(random, run));
  if (inside->done()) Finish(index);
  return absl::OkStatus();
}

void EmulatedGraphRun::Finish(int node) {
  ready_.erase(std::find(ready_.begin(), ready_.end(), node));
  for (const int dependent : dependents_[node]) {
    if (--waits_for_[dependent] == 0) ready_.push_back(dependent);
  }
}

}  // namespace onestep
