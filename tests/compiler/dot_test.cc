// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

TEST(DotTest, PrintsNodesEdgesAndOutputs) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(graph {
    %x = input f32[3,7]
    %w = param f32[5,7]
    %0 = matmul(%x, %w) {trans_b=true} : f32[3,5] @forward
    result y = %0
  })"));
  EXPECT_EQ(PrintDot(graph),
            R"(digraph onestep {
  n0 [label="%x", shape=ellipse];
  n1 [label="%w", shape=ellipse];
  n2 [label="%0 = matmul\n{trans_b=true}", shape=box, style=filled, fillcolor=lightblue];
  n0 -> n2 [label="f32[3,7]"];
  n1 -> n2 [label="f32[5,7]"];
  out0 [label="result y", shape=plaintext];
  n2 -> out0 [label="f32[3,5]"];
}
)");
}

TEST(DotTest, ListsTheOpsThatAFusedNodeWasMadeFrom) {
  Graph graph;
  const Value x = graph.AddInput("x", F32({3, 7}));
  const Value y = graph.Add(OpKind::kRelu, {x});
  y.node->fused_from = {"add_bias", "relu"};
  EXPECT_THAT(PrintDot(graph), HasSubstr("%0 = relu\\nadd_bias + relu\""));
}

TEST(DotTest, ColoursEachPhaseDifferently) {
  Graph graph;
  Value x = graph.AddInput("x", F32({3, 7}));
  for (Phase phase : {Phase::kNone, Phase::kForward, Phase::kLoss,
                      Phase::kBackward, Phase::kUpdate}) {
    graph.set_phase(phase);
    x = graph.Add(OpKind::kRelu, {x});
  }
  const std::string dot = PrintDot(graph);
  for (const char* color :
       {"=white", "=lightblue", "=lightyellow", "=lightpink", "=lightgreen"}) {
    EXPECT_THAT(dot, HasSubstr(color));
  }
}

TEST(DotTest, NamesAMultiResultNodeOnce) {
  Graph graph;
  const Value w = graph.AddParam("w", F32({7}));
  const Value lr = graph.AddInput("lr", F32({}));
  const Value w_new = graph.Add(OpKind::kMomentumUpdate, {w, w, w, lr});
  graph.AddUpdate(w, w_new);
  const std::string dot = PrintDot(graph);
  EXPECT_THAT(dot, HasSubstr("\"%0 = momentum_update\""));
  EXPECT_THAT(dot, HasSubstr("\"update w\""));
}

TEST(DotTest, EscapesQuotesAndBackslashes) {
  Graph graph;
  graph.AddInput("a\"b\\c", F32({}));
  EXPECT_THAT(PrintDot(graph), HasSubstr(R"(label="%a\"b\\c")"));
}

}  // namespace
}  // namespace onestep
