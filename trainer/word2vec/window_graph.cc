// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/window_graph.h"

#include <vector>

#include "runtime/base/status.h"

namespace onestep {
namespace {

TensorType Ids(int64_t n) { return {DType::kI32, {n}}; }

struct Leaves {
  Value in, out, contexts, mask, mean, spread, outputs, weights, labels, lr;
};

Leaves AddLeaves(Graph& graph, const WindowSpec& spec) {
  Leaves leaves;
  leaves.in = graph.AddParam("in", F32({spec.in_rows, spec.cols}));
  leaves.out = graph.AddParam("out", F32({spec.out_rows, spec.cols}));
  leaves.contexts = graph.AddInput("contexts", Ids(spec.contexts));
  if (spec.cbow) {
    leaves.mean = graph.AddInput("context_mean", F32({1, spec.contexts}));
    leaves.spread = graph.AddInput("context_spread", F32({1, spec.contexts}));
    leaves.mask = graph.AddConstant(1, F32({1}));
  } else {
    leaves.mask = graph.AddInput("context_mask", F32({spec.contexts}));
  }
  leaves.outputs = graph.AddInput("outputs", Ids(spec.outputs));
  leaves.weights = graph.AddInput("output_weights", F32({1, spec.outputs}));
  if (spec.hs) leaves.labels = graph.AddInput("labels", F32({1, spec.outputs}));
  leaves.lr = graph.AddInput("lr", F32({}));
  return leaves;
}

struct Forward {
  Value h, loss;
};

Forward AddForward(Graph& graph, const WindowSpec& spec, const Leaves& leaves) {
  graph.set_phase(Phase::kForward);
  Value h = graph.Add(OpKind::kGatherRows, {leaves.in, leaves.contexts});
  if (spec.cbow) h = graph.Add(OpKind::kBlockMatMul, {leaves.mean, h});
  const Value o = graph.Add(OpKind::kGatherRows, {leaves.out, leaves.outputs});
  BlockMatMulAttrs dots;
  dots.trans_b = true;
  const Value z = graph.Add(OpKind::kBlockMatMul, {h, o}, dots);
  graph.set_phase(Phase::kLoss);
  std::vector<Value> operands = {z, leaves.mask, leaves.weights};
  if (spec.hs) operands.push_back(leaves.labels);
  const Value loss =
      graph.Add(OpKind::kSigmoidBce, operands, PositivesAttrs{spec.hs ? 0 : 1});
  graph.AddResult("loss", loss);
  return {h, loss};
}

// The gradient of `in` from that of the mean h: word2vec's own, which need not
// be the derivative.
Value SpreadGradient(Graph& graph, const Leaves& leaves, Value dh) {
  graph.set_phase(Phase::kBackward);
  BlockMatMulAttrs outer;
  outer.trans_a = true;
  const Value dx = graph.Add(OpKind::kBlockMatMul, {leaves.spread, dh}, outer);
  const Value zero = graph.AddConstant(0, leaves.in.type());
  return graph.Add(OpKind::kScatterAdd, {zero, leaves.contexts, dx});
}

}  // namespace

absl::StatusOr<Graph> BuildWindowStep(const WindowSpec& spec) {
  Graph graph;
  const Leaves leaves = AddLeaves(graph, spec);
  const auto [h, loss] = AddForward(graph, spec, leaves);
  ASSIGN_OR_RETURN(
      std::vector<Value> gradients,
      Gradients(graph, loss, {spec.cbow ? h : leaves.in, leaves.out}));
  if (spec.cbow) gradients[0] = SpreadGradient(graph, leaves, gradients[0]);
  graph.set_phase(Phase::kUpdate);
  const Value params[] = {leaves.in, leaves.out};
  for (int i = 0; i < 2; ++i) {
    graph.AddUpdate(params[i], graph.Add(OpKind::kSgdUpdate,
                                         {params[i], gradients[i], leaves.lr}));
  }
  RETURN_IF_ERROR(graph.Verify());
  return graph;
}

}  // namespace onestep
