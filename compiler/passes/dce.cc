// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/passes.h"

namespace onestep {
namespace {

bool IsUsed(const Graph& graph, Node* node) {
  for (size_t i = 0; i < node->types.size(); ++i) {
    if (graph.CountUses(node->result(static_cast<int>(i))) > 0) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> Dce(PassContext& context) {
  Graph& graph = context.graph;
  bool changed = false;
  // In reverse order, so that operands of a dead node become dead before their
  // turn.
  for (int i = graph.size() - 1; i >= 0; --i) {
    Node* const node = graph.nodes()[i].get();
    if (node->def().Has(kLeaf) || IsUsed(graph, node)) continue;
    graph.Erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace onestep
