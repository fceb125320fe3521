// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "compiler/passes/partition.h"

namespace onestep {

absl::Status SpreadModels(Partition& partition) {
  const int64_t models = ModelsOf(partition.graph);
  const int workers = partition.workers;
  if (models < workers) {
    return absl::UnimplementedError(
        absl::StrCat("dispatch single: want at least as many models as "
                     "workers, got ",
                     models, " models and ", workers, " workers"));
  }
  const int64_t most = (models + workers - 1) / workers;
  for (const auto& node : partition.graph.nodes()) {
    if (node->kind == OpKind::kParam) {
      partition.homes[node->name()] = ByModels(node->types[0]);
    }
    if (node->def().Has(kLeaf) || node->kind == OpKind::kConstant) continue;
    partition.strategies[node.get()] = ByModels(*node);
    const bool shared = node->models() == 0;
    partition.us += NodeUs(
        *node,
        shared ? 1 : static_cast<double>(most) / static_cast<double>(models));
  }
  return absl::OkStatus();
}

}  // namespace onestep
