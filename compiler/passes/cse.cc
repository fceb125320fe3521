// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/passes.h"

namespace onestep {
namespace {

bool SameValue(const Node& a, const Node& b) {
  // Leaves of the same type still differ in their names.
  return a.kind == b.kind && a.operands == b.operands && a.attrs == b.attrs &&
         a.types == b.types;
}

// The first earlier node that computes the same as node i, or nullptr.
Node* FindTwin(const Graph& graph, int i) {
  for (int j = 0; j < i; ++j) {
    Node* const earlier = graph.nodes()[j].get();
    if (SameValue(*earlier, *graph.nodes()[i])) return earlier;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<bool> Cse(PassContext& context) {
  Graph& graph = context.graph;
  bool changed = false;
  for (int i = 0; i < graph.size();) {
    Node* const twin = FindTwin(graph, i);
    if (twin == nullptr) {
      ++i;
      continue;
    }
    Node* const node = graph.nodes()[i].get();
    for (size_t r = 0; r < node->types.size(); ++r) {
      const int index = static_cast<int>(r);
      graph.ReplaceUses(node->result(index), twin->result(index));
    }
    graph.Erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace onestep
