// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/passes/random_mlp.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

namespace onestep {
namespace {

MlpSpec RandomSpec(MlpRandom& random) {
  MlpSpec spec;
  spec.widths.clear();
  const int64_t hidden = random.Below(5);
  const bool one_width = random.OneIn(3);
  for (int64_t i = 0; i < hidden + 2; ++i) {
    spec.widths.push_back(one_width && i > 0 ? spec.widths[0]
                                             : 1 + random.Below(9));
  }
  spec.batch = 1 + random.Below(7);
  spec.table_rows = 11;
  spec.activation = static_cast<Activation>(random.Below(5));
  spec.loss = random.OneIn(3) ? Loss::kMse : Loss::kSoftmaxXent;
  if (random.OneIn(3)) {
    spec.update =
        random.OneIn(2) ? OpKind::kMomentumUpdate : OpKind::kAdamUpdate;
  }
  if (random.OneIn(5)) spec.weight_decay = 0.125f;
  spec.share_weights = random.OneIn(4);
  spec.residual = random.OneIn(4);
  if (random.OneIn(3)) {
    spec.extra = static_cast<ExtraUse>(random.Below(kNumExtraUses));
  }
  return spec;
}

// Another legal order of the nodes; leaves stay in front.
void Shuffle(Graph& graph, MlpRandom& random) {
  for (int swaps = 4 * graph.size(); swaps > 0; --swaps) {
    const auto i = static_cast<size_t>(random.Below(graph.size() - 1));
    Node* const first = graph.nodes()[i].get();
    Node* const second = graph.nodes()[i + 1].get();
    const bool reads = std::any_of(
        second->operands.begin(), second->operands.end(),
        [first](const Value& operand) { return operand.node == first; });
    if (!reads && !first->def().Has(kLeaf)) graph.MoveBefore(second, first);
  }
}

TensorMap RandomBindings(const Graph& graph, MlpRandom& random) {
  TensorMap bindings;
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf)) continue;
    std::vector<double>& values = bindings[node->name()];
    const TensorType& type = node->types[0];
    for (int64_t i = 0; i < type.num_elements(); ++i) {
      double value = random.Uniform();
      if (type.dtype == DType::kU8) {
        value = static_cast<double>(random.Below(256));
      } else if (node->name() == "indices") {
        value = static_cast<double>(
            random.Below(graph.FindLeaf("labels")->types[0].dims[0]));
      } else if (node->name() == "step") {
        value = 3;
      } else if (node->name() == "lr" || absl::StartsWith(node->name(), "v_")) {
        value = std::abs(value);  // v: a mean of squares
      }
      values.push_back(value);
    }
  }
  return bindings;
}

void SetLabels(const MlpSpec& spec, MlpRandom& random, TensorMap& bindings) {
  for (double& label : bindings["labels"]) {
    label = static_cast<double>(random.Below(spec.widths.back()));
  }
}

}  // namespace

RandomMlp MakeRandomMlp(MlpRandom& random) {
  RandomMlp mlp;
  mlp.spec = RandomSpec(random);
  mlp.graph = MakeMlp(mlp.spec);
  if (random.OneIn(2)) Shuffle(mlp.graph, random);
  mlp.bindings = RandomBindings(mlp.graph, random);
  SetLabels(mlp.spec, random, mlp.bindings);
  return mlp;
}

}  // namespace onestep
