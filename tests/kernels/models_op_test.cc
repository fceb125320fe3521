// SPDX-License-Identifier: Apache-2.0
// Every op of many models gives each the bits that the loop of one model does.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "tests/kernels/op_cases.h"
#include "tests/models.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

// The leaves that the op of the case reads and may have one of for each model;
// `either`: also those that may be shared.
std::vector<std::string> InputsPerModel(const OpCase& c, bool either) {
  std::vector<std::string> names;
  for (const auto& node : c.graph.nodes()) {
    if (node->def().Has(kLeaf)) continue;
    const int operands = static_cast<int>(node->operands.size());
    const std::vector<ModelAxis> axes =
        node->def().rules.batch(operands, node->attrs);
    for (int i = 0; i < operands; ++i) {
      const Node& leaf = *node->operands[i].node;
      const bool wanted = axes[i] == ModelAxis::kPerModel ||
                          (either && axes[i] == ModelAxis::kEither);
      if (leaf.kind == OpKind::kInput && wanted) names.push_back(leaf.name());
    }
  }
  return names;
}

// The same values in another order and smaller, so that what is positive or
// below one stays so.
TensorMap Model(const OpCase& c, size_t k) {
  TensorMap bindings = c.bindings;
  for (const auto& node : c.graph.nodes()) {
    if (!node->def().Has(kLeaf) || node->types[0].dtype != DType::kF32)
      continue;
    const std::vector<double>& from = c.bindings.at(node->name());
    std::vector<double>& to = bindings.at(node->name());
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = from[(i + k) % from.size()] / static_cast<double>(1 + k % 3);
    }
  }
  return RoundToLeaves(c.graph, std::move(bindings));
}

void ExpectModelsAlone(const OpCase& c, int64_t models, bool either,
                       int threads, std::set<OpKind>& seen) {
  Graph all = c.graph.Clone();
  PassContext context{all, {}, {}, {models, InputsPerModel(c, either)}};
  ASSERT_OK(VectorizeModels(context).status());
  if (ModelsOf(all) == 0) return;  // an op on what models share
  ASSERT_OK(all.Verify());
  for (const auto& node : all.nodes()) {
    if (node->models() > 0) seen.insert(node->kind);
  }
  SCOPED_TRACE(PrintGraph(all));
  std::vector<TensorMap> bindings;
  for (int64_t k = 0; k < models; ++k) {
    bindings.push_back(Model(c, static_cast<size_t>(k)));
    // What models share is that of the first.
    for (const auto& node : all.nodes()) {
      if (!node->def().Has(kLeaf) || node->models() > 0) continue;
      bindings.back()[node->name()] = bindings[0][node->name()];
    }
  }
  ASSERT_OK_AND_ASSIGN(
      const TensorMap got,
      RunChain(all, Interleave(all, bindings), KernelChoice::kBySize, threads));
  for (size_t k = 0; k < bindings.size(); ++k) {
    ASSERT_OK_AND_ASSIGN(
        const TensorMap want,
        RunChain(c.graph, bindings[k], KernelChoice::kLoops, 1));
    ASSERT_NO_FATAL_FAILURE(ExpectModel(got, bindings.size(), k, want));
  }
}

TEST(ModelsOpTest, EveryOpGivesEveryModelTheBitsItHasAlone) {
  constexpr int64_t kModels[] = {2, 3, 5, 17, 1};
  std::set<OpKind> seen;
  int64_t index = 0;
  ForEachOpCase([&](const OpCase& c) {
    if (testing::Test::HasFatalFailure()) return;
    ++index;
    if (index % 3 != 0 || c.graph.nodes()[0]->types[0].num_elements() > 4000) {
      return;  // enough, and quick
    }
    ExpectModelsAlone(c, kModels[index % 5], index % 2 == 0,
                      index % 4 == 0 ? 3 : 1, seen);
  });
  for (const OpDef& def : AllOps()) {
    const std::vector<ModelAxis> axes =
        def.rules.batch(def.max_operands, def.default_attrs);
    const bool per_model = std::count(axes.begin(), axes.end(),
                                      ModelAxis::kShared) < std::ssize(axes);
    if (!per_model) continue;
    EXPECT_TRUE(seen.count(def.kind)) << def.name;
  }
}

}  // namespace
}  // namespace onestep
