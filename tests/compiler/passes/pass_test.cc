// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/passes/pass_test.h"

#include <algorithm>

#include "compiler/ir/text.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

// The param whose memory `node` writes, or nullptr.
Node* OverwrittenParam(const Graph& graph, const Node& node) {
  bool in_place = false;
  if (node.kind == OpKind::kMatMul) {
    in_place = node.as<MatMulAttrs>().accumulate;
  } else if (node.kind == OpKind::kLossGrad) {
    in_place = node.as<LossGradAttrs>().bias == BiasGrad::kUpdate;
  } else if (node.kind == OpKind::kActivationGrad) {
    in_place = node.as<ActivationGradAttrs>().bias == BiasGrad::kUpdate;
  } else if (node.kind == OpKind::kSparseOuter) {
    in_place = node.as<SparseOuterAttrs>().accumulate;
  }
  if (!in_place) return nullptr;
  Node* const old = node.operands.back().node;
  return old->kind == OpKind::kParam && graph.UpdateOf(old).node == &node
             ? old
             : nullptr;
}

}  // namespace

PassResult RunPass(PassFunction pass, absl::string_view text,
                   const SparseInput& sparse) {
  PassResult result;
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_OK(graph);
  if (!graph.ok()) return result;
  result.graph = *std::move(graph);
  const std::string before = PrintGraph(result.graph);
  PassContext context{result.graph, {}, sparse};
  const absl::StatusOr<bool> changed = pass(context);
  EXPECT_OK(changed);
  EXPECT_OK(result.graph.Verify());
  result.changed = changed.ok() && *changed;
  result.text = PrintGraph(result.graph);
  result.refusals = context.refusals;
  EXPECT_EQ(result.changed, result.text != before);

  PassContext again{result.graph, {}, sparse};
  const absl::StatusOr<bool> changed_again = pass(again);
  EXPECT_OK(changed_again);
  EXPECT_FALSE(changed_again.ok() && *changed_again) << "in the second run";
  EXPECT_EQ(PrintGraph(result.graph), result.text) << "after the second run";
  return result;
}

std::string Canonical(absl::string_view text) {
  const absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_OK(graph);
  return graph.ok() ? PrintGraph(*graph) : "";
}

testing::AssertionResult InPlaceLegal(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    Node* const param = OverwrittenParam(graph, *node);
    if (param == nullptr) continue;
    const Value old = param->result();
    if (graph.IsOutput(old)) {
      return testing::AssertionFailure()
             << "an output wants the old %" << param->name();
    }
    if (std::count(node->operands.begin(), node->operands.end(), old) > 1) {
      return testing::AssertionFailure()
             << graph.NameOf(node->result()) << " reads what it overwrites";
    }
    for (Node* reader : graph.Users(old)) {
      if (graph.IndexOf(reader) > graph.IndexOf(node.get())) {
        return testing::AssertionFailure()
               << graph.NameOf(reader->result()) << " reads the old %"
               << param->name() << " after its update";
      }
    }
  }
  return testing::AssertionSuccess();
}

Graph AsRunInPlace(const Graph& graph) {
  Graph run = graph.Clone();
  for (int i = 0; i < run.size(); ++i) {
    const Node* const param = OverwrittenParam(run, *run.nodes()[i]);
    if (param == nullptr) continue;
    const Value updated = run.UpdateOf(param);
    for (int j = i + 1; j < run.size(); ++j) {
      for (Value& operand : run.nodes()[j]->operands) {
        if (operand.node == param) operand = updated;
      }
    }
  }
  return run;
}

}  // namespace onestep
