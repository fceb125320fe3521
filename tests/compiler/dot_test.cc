// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DotTest, PrintsNodesEdgesAndOutputs) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(graph {
    %x = input f32[3,7]
    %w = param f32[5,7]
    %0 = matmul(%x, %w) {trans_b=true} : f32[3,5] @forward
    result y = %0
  })"));
  EXPECT_THAT(PrintDot(graph), EndsWith(R"(
  n0 [label="%0 = matmul\n{trans_b=true}", shape=box, style=filled, fillcolor=lightblue, class=forward];
  leaf0 [label="%x", shape=ellipse, class=leaf];
  leaf1 [label="%w", shape=ellipse, class=leaf];
  out0 [label="result y", shape=plaintext, class=output];
  leaf0 -> n0 [label="f32[3,7]"];
  leaf1 -> n0 [label="f32[5,7]"];
  n0 -> out0 [label="f32[3,5]"];
}
)"));
}

TEST(DotTest, DrawsALeafOncePerUse) {
  Graph graph;
  const Value x = graph.AddInput("x", F32({3}));
  graph.AddInput("unused", F32({3}));
  graph.AddResult("y", graph.Add(OpKind::kAdd, {x, x}));
  const std::string dot = PrintDot(graph);
  EXPECT_THAT(dot, HasSubstr("leaf0 -> n0"));
  EXPECT_THAT(dot, HasSubstr("leaf1 -> n0"));
  EXPECT_THAT(dot, Not(HasSubstr("leaf2")));
}

TEST(DotTest, ListsTheOpsThatAFusedNodeWasMadeFrom) {
  Graph graph;
  const Value x = graph.AddInput("x", F32({3, 7}));
  const Value y = AddActivation(graph, Activation::kRelu, x);
  y.node->fused_from = {"add_bias", "relu"};
  EXPECT_THAT(PrintDot(graph), HasSubstr("%0 = relu\\nadd_bias + relu\""));
}

TEST(DotTest, BreaksALongListOfOps) {
  Graph graph;
  const Value x = graph.AddInput("x", F32({3, 7}));
  AddActivation(graph, Activation::kRelu, x).node->fused_from = {
      "gather_rows", "count_correct", "minus_one_hot", "reduce_rows", "relu"};
  EXPECT_THAT(PrintDot(graph),
              HasSubstr("\\ngather_rows + count_correct + minus_one_hot + "
                        "\\nreduce_rows + relu\""));
}

TEST(DotTest, FramesTheNodesOfAGroup) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(graph {
    %x = input f32[3]
    %0 = relu(%x) : f32[3] @forward
    %1 = relu(%0) : f32[3] @forward
    result y = %1
  })"));
  const Node* const first = graph.nodes()[1].get();
  const Node* const second = graph.nodes()[2].get();
  EXPECT_THAT(PrintDot(graph, {{"a \"b\"", {first}}, {"", {first, second}}}),
              HasSubstr(R"(
  subgraph cluster_0 {
    label="a \"b\""; class=group0;
    n0 [label="%0 = relu", shape=box, style=filled, fillcolor=lightblue, class=forward];
  }
  subgraph cluster_1 {
    label=""; class=group1;
    n1 [label="%1 = relu", shape=box, style=filled, fillcolor=lightblue, class=forward];
  }
)"));
}

TEST(DotTest, ColoursEachPhaseDifferently) {
  Graph graph;
  Value x = graph.AddInput("x", F32({3, 7}));
  for (Phase phase : {Phase::kNone, Phase::kForward, Phase::kLoss,
                      Phase::kBackward, Phase::kUpdate}) {
    graph.set_phase(phase);
    x = AddActivation(graph, Activation::kRelu, x);
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
  graph.AddResult("y", graph.AddInput("a\"b\\c", F32({})));
  EXPECT_THAT(PrintDot(graph), HasSubstr(R"(label="%a\"b\\c")"));
}

}  // namespace
}  // namespace onestep
