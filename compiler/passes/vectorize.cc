// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

absl::Status CheckInputs(const Graph& graph, const Vectorize& options) {
  if (ModelsOf(graph) > 0) {
    return absl::InvalidArgumentError("the graph has a model axis already");
  }
  for (const std::string& name : options.inputs) {
    const Node* const leaf = graph.FindLeaf(name);
    if (leaf != nullptr && leaf->kind == OpKind::kInput) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("want names of inputs, got ", name));
  }
  return absl::OkStatus();
}

bool IsPerModel(const Node& leaf, const Vectorize& options) {
  return leaf.kind == OpKind::kParam ||
         std::count(options.inputs.begin(), options.inputs.end(), leaf.name()) >
             0;
}

}  // namespace

absl::StatusOr<bool> VectorizeModels(PassContext& context) {
  Graph& graph = context.graph;
  const Vectorize& options = context.vectorize;
  if (options.models == 0) return false;
  RETURN_IF_ERROR(CheckInputs(graph, options));
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  for (Node* const node : nodes) {
    if (node->def().Has(kLeaf)) {
      if (IsPerModel(*node, options)) node->types[0].models = options.models;
    } else if (node->kind != OpKind::kConstant) {
      const absl::Status status = graph.InferAnew(node);
      if (!status.ok()) return absl::UnimplementedError(status.message());
    }
  }
  // A new value that depends on no param is broadcast to every model.
  for (int i = 0; i < static_cast<int>(graph.outputs().size()); ++i) {
    const Output out = graph.outputs()[i];
    if (out.kind != Output::kUpdate || out.value.type().models > 0) continue;
    graph.set_phase(Phase::kUpdate);
    graph.SetOutput(i, graph.Add(OpKind::kBroadcastModels, {out.value},
                                 ModelsAttrs{options.models}));
    graph.set_phase(Phase::kNone);
  }
  return true;
}

}  // namespace onestep
