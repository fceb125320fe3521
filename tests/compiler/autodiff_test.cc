// SPDX-License-Identifier: Apache-2.0
// What nodes the reverse sweep makes; that they are right is checked by
// op_grad_test.
#include "compiler/passes/autodiff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

Graph Parse(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_OK(graph);
  return graph.ok() ? std::move(*graph) : Graph();
}

// The graph after the gradients of its first result with respect to `names`
// were added, each as result d_<name>.
std::string Differentiate(Graph graph, const std::vector<std::string>& names) {
  std::vector<Value> xs;
  for (const auto& name : names) {
    xs.push_back(graph.FindLeaf(name)->result());
  }
  const auto dxs = Gradients(graph, graph.outputs()[0].value, xs);
  if (!dxs.ok()) return dxs.status().ToString();
  for (size_t i = 0; i < names.size(); ++i) {
    graph.AddResult("d_" + names[i], (*dxs)[i]);
  }
  EXPECT_OK(graph.Verify());
  return PrintGraph(graph);
}

// No gradient of %x is made, and none of the seed.
TEST(AutodiffTest, MakesTheTextbookBackwardOfAnMlp) {
  const std::string leaves = R"(graph {
  %x = input f32[2,7]
  %labels = input i32[2]
  %w1 = param f32[7,5]
  %b1 = param f32[5]
  %w2 = param f32[5,3]
  %b2 = param f32[3]
  %0 = matmul(%x, %w1) : f32[2,5] @forward
  %1 = add_bias(%0, %b1) : f32[2,5] @forward
  %2 = relu(%1) : f32[2,5] @forward
  %3 = matmul(%2, %w2) : f32[2,3] @forward
  %4 = add_bias(%3, %b2) : f32[2,3] @forward
  %5 = nll_loss(%4, %labels) : f32[] @loss
)";
  EXPECT_EQ(Differentiate(Parse(leaves + "  result loss = %5\n}\n"),
                          {"w1", "b1", "w2", "b2"}),
            leaves + R"(  %6 = softmax(%4) : f32[2,3] @backward
  %7 = minus_one_hot(%6, %labels) : f32[2,3] @backward
  %8 = scale(%7) {alpha=0.5} : f32[2,3] @backward
  %9 = reduce_rows(%8) : f32[3] @backward
  %10 = matmul(%8, %w2) {trans_b=true} : f32[2,5] @backward
  %11 = matmul(%2, %8) {trans_a=true} : f32[5,3] @backward
  %12 = relu_grad(%2, %10) : f32[2,5] @backward
  %13 = reduce_rows(%12) : f32[5] @backward
  %14 = matmul(%x, %12) {trans_a=true} : f32[7,5] @backward
  result loss = %5
  result d_w1 = %14
  result d_b1 = %13
  result d_w2 = %11
  result d_b2 = %9
}
)");
}

TEST(AutodiffTest, SumsTheContributionsOfEachUse) {
  EXPECT_EQ(Differentiate(Parse(R"(graph {
              %x = param f32[]
              %y = input f32[]
              %0 = mul(%x, %y) : f32[]
              %1 = add(%x, %0) : f32[]
              result loss = %1
            })"),
                          {"x"}),
            R"(graph {
  %x = param f32[]
  %y = input f32[]
  %0 = mul(%x, %y) : f32[]
  %1 = add(%x, %0) : f32[]
  %2 = constant() {value=1} : f32[] @backward
  %3 = add(%2, %y) : f32[] @backward
  result loss = %1
  result d_x = %3
}
)");
}

TEST(AutodiffTest, GeluGradReadsTheOperand) {
  EXPECT_THAT(Differentiate(Parse(R"(graph {
                %x = param f32[3]
                %t = input f32[3]
                %0 = gelu(%x) : f32[3]
                %1 = mse_loss(%0, %t) : f32[]
                result loss = %1
              })"),
                            {"x"}),
              HasSubstr("%3 = gelu_grad(%x, %2) : f32[3] @backward"));
}

TEST(AutodiffTest, ALossThatIsScaledMultipliesItsGradient) {
  EXPECT_THAT(Differentiate(Parse(R"(graph {
                %x = param f32[3]
                %t = input f32[3]
                %s = input f32[]
                %0 = mse_loss(%x, %t) : f32[]
                %1 = mul_scalar(%0, %s) : f32[]
                result loss = %1
              })"),
                            {"x"}),
              HasSubstr("%4 = mse_grad(%x, %t) : f32[3] @backward\n"
                        "  %5 = mul_scalar(%4, %3) : f32[3] @backward\n"));
}

TEST(AutodiffTest, AnXThatYDoesNotDependOnGetsZero) {
  EXPECT_EQ(Differentiate(Parse(R"(graph {
              %x = param f32[3]
              %y = input f32[]
              %0 = relu(%x) : f32[3]
              result loss = %y
            })"),
                          {"x"}),
            R"(graph {
  %x = param f32[3]
  %y = input f32[]
  %0 = relu(%x) : f32[3]
  %1 = constant() : f32[3] @backward
  result loss = %y
  result d_x = %1
}
)");
}

TEST(AutodiffTest, TheGradientOfYItselfIsOne) {
  Graph graph;
  const Value y = graph.AddParam("y", F32({}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Value> dxs, Gradients(graph, y, {y}));
  EXPECT_TRUE(IsConstantOne(dxs[0]));
}

TEST(AutodiffTest, AnXMayBeAValueOnTheWayToAnother) {
  Graph graph;
  const Value x = graph.AddParam("x", F32({3}));
  const Value t = graph.AddInput("t", F32({3}));
  const Value h = AddActivation(graph, Activation::kTanh, x);
  const Value y = graph.Add(OpKind::kMseLoss, {h, t});
  ASSERT_OK_AND_ASSIGN(const std::vector<Value> dxs,
                       Gradients(graph, y, {x, h}));
  EXPECT_EQ(dxs[1].node->kind, OpKind::kMseGrad);
  EXPECT_EQ(dxs[0].node->op(), "tanh_grad");
  EXPECT_EQ(dxs[0].node->operands[1], dxs[1]);
}

TEST(AutodiffTest, OpsOffThePathNeedNoGradient) {
  EXPECT_THAT(Differentiate(Parse(R"(graph {
                %table = input u8[9,3]
                %indices = input i32[2]
                %x = param f32[2,3]
                %0 = gather_convert(%table, %indices) : f32[2,3]
                %1 = mse_loss(%x, %0) : f32[]
                result loss = %1
              })"),
                            {"x"}),
              HasSubstr("result d_x = %2"));
}

TEST(AutodiffTest, OpsThatDoNotReachYNeedNoGradient) {
  EXPECT_THAT(Differentiate(Parse(R"(graph {
                %z = param f32[2,3]
                %labels = input i32[2]
                %0 = count_correct(%z, %labels) : f32[]
                %1 = nll_loss(%z, %labels) : f32[]
                result loss = %1
                result correct = %0
              })"),
                            {"z"}),
              HasSubstr("result d_z = %4"));
}

TEST(AutodiffTest, AnOpOnThePathWithoutARuleIsRefusedByName) {
  Graph graph = Parse(R"(graph {
    %x = param f32[9,3]
    %t = input f32[2,3]
    %0 = slice(%x) {size=2} : f32[2,3]
    %1 = mse_loss(%0, %t) : f32[]
    result loss = %1
  })");
  EXPECT_THAT(
      Gradients(graph, graph.outputs()[0].value,
                {graph.FindLeaf("x")->result()}),
      StatusIs(absl::StatusCode::kUnimplemented, "slice: has no gradient"));
  EXPECT_EQ(graph.phase(), Phase::kNone);
}

TEST(AutodiffTest, RestoresThePhase) {
  Graph graph;
  const Value x = graph.AddParam("x", F32({}));
  graph.set_phase(Phase::kUpdate);
  ASSERT_OK_AND_ASSIGN(const std::vector<Value> dxs, Gradients(graph, x, {x}));
  EXPECT_EQ(dxs[0].node->phase, Phase::kBackward);
  EXPECT_EQ(graph.phase(), Phase::kUpdate);
}

TEST(AutodiffTest, RefusesAYThatIsNoScalarAndAnXOfIntegers) {
  Graph graph;
  const Value x = graph.AddParam("x", F32({3}));
  const Value labels = graph.AddInput("labels", {DType::kI32, {3}});
  const Value y = graph.AddInput("y", F32({}));
  EXPECT_THAT(Gradients(graph, x, {x}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "gradients: want y f32[], got f32[3]"));
  EXPECT_THAT(Gradients(graph, y, {labels}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "gradients: want x f32, got i32[3]"));
}

}  // namespace
}  // namespace onestep
