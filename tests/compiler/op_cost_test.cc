// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/text.h"
#include "compiler/passes/autodiff.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

// The cost of the last node of the graph with this body.
OpCost CostOf(const std::string& body) {
  absl::StatusOr<Graph> graph =
      ParseGraph(absl::StrCat("graph {\n", body, "\n}\n"));
  EXPECT_OK(graph);
  if (!graph.ok()) return {-1, -1};
  const Node& node = *graph->nodes().back();
  return CostOf(node);
}

TEST(OpCostTest, MatMulCountsTwoFlopsPerMultiplyAdd) {
  const OpCost cost = CostOf(R"(
    %a = input f32[3,7]
    %b = input f32[7,17]
    %0 = matmul(%a, %b) : f32[3,17])");
  EXPECT_EQ(cost.flops, 2 * 3 * 7 * 17);
  EXPECT_EQ(cost.bytes, 4 * (3 * 7 + 7 * 17 + 3 * 17));
}

TEST(OpCostTest, MatMulTakesItsInnerSizeFromATransposedOperand) {
  EXPECT_EQ(CostOf(R"(
    %a = input f32[7,3]
    %b = input f32[17,7]
    %0 = matmul(%a, %b) {trans_a=true, trans_b=true} : f32[3,17])")
                .flops,
            2 * 3 * 7 * 17);
}

TEST(OpCostTest, MatMulAddsItsEpilogue) {
  const OpCost cost = CostOf(R"(
    %a = input f32[3,7]
    %b = input f32[7,17]
    %bias = input f32[17]
    %0 = matmul(%a, %b, %bias) {bias=true, activation=relu} : f32[3,17])");
  EXPECT_EQ(cost.flops, 2 * 3 * 7 * 17 + 2 * 3 * 17);
  EXPECT_EQ(cost.bytes, 4 * (3 * 7 + 7 * 17 + 17 + 3 * 17));
}

// Two matmuls forward; backward two for the second layer but only dW for the
// first, whose input needs no gradient.
TEST(OpCostTest, TheTrainStepOfAnMlpHasTheKnownMatMulFlops) {
  constexpr int kBatch = 32;
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %x = input f32[32,784]
    %labels = input i32[32]
    %w1 = param f32[784,128]
    %b1 = param f32[128]
    %w2 = param f32[128,10]
    %b2 = param f32[10]
    %0 = matmul(%x, %w1) : f32[32,128]
    %1 = add_bias(%0, %b1) : f32[32,128]
    %2 = relu(%1) : f32[32,128]
    %3 = matmul(%2, %w2) : f32[32,10]
    %4 = add_bias(%3, %b2) : f32[32,10]
    %5 = nll_loss(%4, %labels) : f32[]
    result loss = %5
  })"));
  std::vector<Value> params;
  for (const char* name : {"w1", "b1", "w2", "b2"}) {
    params.push_back(graph.FindLeaf(name)->result());
  }
  ASSERT_OK(Gradients(graph, graph.outputs()[0].value, params));
  double flops = 0;
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::kMatMul) flops += CostOf(*node).flops;
  }
  EXPECT_EQ(flops / kBatch, 2 * (2 * 784 * 128 + 3 * 128 * 10));
}

TEST(OpCostTest, GathersReadOnlyTheGatheredRows) {
  const OpCost rows = CostOf(R"(
    %table = input u8[60000,784]
    %indices = input i32[32]
    %0 = gather_rows(%table, %indices) : u8[32,784])");
  EXPECT_EQ(rows.flops, 0);
  EXPECT_EQ(rows.bytes, 4 * 32 + 2 * 32 * 784);
  const OpCost convert = CostOf(R"(
    %table = input u8[60000,784]
    %indices = input i32[32]
    %0 = gather_convert(%table, %indices) {alpha=0.5} : f32[32,784])");
  EXPECT_EQ(convert.flops, 32 * 784);
  EXPECT_EQ(convert.bytes, 4 * 32 + 32 * 784 + 4 * 32 * 784);
}

TEST(OpCostTest, AScatterAddReadsAndWritesTheNamedRows) {
  const OpCost cost = CostOf(R"(
    %table = param f32[60000,784]
    %indices = input i32[32]
    %x = input f32[32,784]
    %0 = scatter_add(%table, %indices, %x) : f32[60000,784])");
  EXPECT_EQ(cost.flops, 32 * 784);
  EXPECT_EQ(cost.bytes, 4 * 32 + 3 * 4 * 32 * 784);
}

TEST(OpCostTest, ABlockMatMulMultipliesWithinItsBlocks) {
  const OpCost cost = CostOf(R"(
    %a = input f32[14,3]
    %b = input f32[14,5]
    %0 = block_matmul(%a, %b) {blocks=2, trans_a=true} : f32[6,5])");
  EXPECT_EQ(cost.flops, 2 * (2 * 3 * 7 * 5));
  EXPECT_EQ(cost.bytes, 4 * (14 * 3 + 14 * 5 + 6 * 5));
}

// Three products, the loss, its gradient, and the additions to the tables.
TEST(OpCostTest, AWindowTouchesOnlyTheRowsItNames) {
  const OpCost sgns = CostOf(R"(
    %in = param f32[60000,112]
    %out = param f32[60000,112]
    %c = input i32[10]
    %mask = input f32[10]
    %n = input i32[6]
    %w = input f32[1,6]
    %lr = input f32[]
    %0:3 = sgns_window(%in, %out, %c, %mask, %n, %w, %lr) {positives=1} : f32[], f32[60000,112], f32[60000,112])");
  EXPECT_EQ(sgns.flops, 60 * (3 * 2 * 112 + 17) + 16 * 112);
  EXPECT_EQ(sgns.bytes, 4 * (10 + 10 + 6 + 6 + 1 + 1) + 2 * 4 * 16 * 112);
  const OpCost cbow = CostOf(R"(
    %in = param f32[60000,112]
    %out = param f32[60000,112]
    %c = input i32[10]
    %mean = input f32[1,10]
    %n = input i32[6]
    %w = input f32[1,6]
    %lr = input f32[]
    %0:3 = cbow_window(%in, %out, %c, %mean, %mean, %n, %w, %lr) : f32[], f32[60000,112], f32[60000,112])");
  EXPECT_EQ(cbow.flops, 6 * (3 * 2 * 112 + 17) + 16 * 112 + 2 * 2 * 10 * 112);
}

TEST(OpCostTest, LossGradReadsOnlyTheGatheredLabels) {
  const OpCost cost = CostOf(R"(
    %z = input f32[32,10]
    %labels = input i32[60000]
    %indices = input i32[32]
    %0:3 = loss_grad(%z, %labels, %indices) {gather=true} : f32[], f32[32,10], f32[])");
  EXPECT_EQ(cost.bytes, 4 * (2 * 320 + 2 * 32 + 2));
  EXPECT_EQ(cost.flops, 7 * 320 + 5 * 32);
}

TEST(OpCostTest, UpdatesReadAndWriteTheirState) {
  const OpCost sgd = CostOf(R"(
    %w = param f32[7,3]
    %dw = input f32[7,3]
    %lr = input f32[]
    %0 = sgd_update(%w, %dw, %lr) : f32[7,3])");
  EXPECT_EQ(sgd.flops, 2 * 21);
  EXPECT_EQ(sgd.bytes, 4 * (3 * 21 + 1));
  const OpCost decayed = CostOf(R"(
    %w = param f32[7,3]
    %dw = input f32[7,3]
    %v = param f32[7,3]
    %lr = input f32[]
    %0:2 = momentum_update(%w, %dw, %v, %lr) {nesterov=true, weight_decay=0.1} : f32[7,3], f32[7,3])");
  EXPECT_EQ(decayed.flops, (4 + 2 + 2) * 21);
  EXPECT_EQ(decayed.bytes, 4 * (5 * 21 + 1));
}

TEST(OpCostTest, BroadcastsAndCastsMoveBytesOnly) {
  const OpCost broadcast = CostOf(R"(
    %x = input f32[17]
    %0 = broadcast_rows(%x) {rows=3} : f32[3,17])");
  EXPECT_EQ(broadcast.flops, 0);
  EXPECT_EQ(broadcast.bytes, 4 * (17 + 3 * 17));
  const OpCost cast = CostOf(R"(
    %x = input u8[3,17]
    %0 = cast(%x) : f32[3,17])");
  EXPECT_EQ(cast.flops, 0);
  EXPECT_EQ(cast.bytes, 5 * 3 * 17);
}

TEST(OpCostTest, ElementwiseOpsCountTheirFormulaPerElement) {
  const std::vector<std::pair<std::string, double>> ops = {
      {"scale", 1},    {"relu", 1},         {"tanh", 1},
      {"sigmoid", 4},  {"gelu", 5},         {"add", 1},
      {"mul", 1},      {"relu_grad", 1},    {"tanh_grad", 3},
      {"softmax", 5},  {"sigmoid_grad", 3}, {"gelu_grad", 11},
      {"mse_grad", 2}, {"softmax_grad", 4}};
  for (const auto& [name, flops] : ops) {
    SCOPED_TRACE(name);
    const auto [kind, attrs] = *FindOp(name);
    Graph graph;
    const Value x = graph.AddInput("x", F32({3, 17}));
    const int operands = GetOpDef(kind).min_operands;
    const Value y = graph.Add(kind, std::vector<Value>(operands, x), attrs);
    const OpCost cost = CostOf(*y.node);
    EXPECT_EQ(cost.flops, flops * 3 * 17);
    EXPECT_EQ(cost.bytes, 4 * (operands + 1) * 3 * 17);
  }
}

TEST(OpCostTest, LossesAddTheirWorkPerRow) {
  const std::string leaves = R"(
    %z = input f32[3,17]
    %labels = input i32[3]
    )";
  const OpCost nll = CostOf(leaves + "%0 = nll_loss(%z, %labels) : f32[]");
  EXPECT_EQ(nll.flops, 4 * 3 * 17 + 4 * 3);
  EXPECT_EQ(nll.bytes, 4 * (3 * 17 + 3 + 1));
  const OpCost minus =
      CostOf(leaves + "%0 = minus_one_hot(%z, %labels) : f32[3,17]");
  EXPECT_EQ(minus.flops, 3);
  EXPECT_EQ(minus.bytes, 4 * (2 * 3 * 17 + 3));
}

TEST(OpCostTest, ASigmoidBceCountsItsFormulaPerPair) {
  const std::string leaves = R"(
    %z = input f32[3,17]
    %mask = input f32[3]
    %w = input f32[1,17]
    )";
  EXPECT_EQ(CostOf(leaves + "%0 = sigmoid_bce(%z, %mask, %w) : f32[]").flops,
            10 * 3 * 17);
  const OpCost grad =
      CostOf(leaves + "%0 = sigmoid_bce_grad(%z, %mask, %w) : f32[3,17]");
  EXPECT_EQ(grad.flops, 7 * 3 * 17);
  EXPECT_EQ(grad.bytes, 4 * (2 * 3 * 17 + 3 + 17));
}

TEST(OpCostTest, ASliceReadsItsPartOnly) {
  const OpCost cost = CostOf(R"(
    %x = input u8[60,17]
    %0 = slice(%x) {axis=1, begin=2, size=5} : u8[60,5])");
  EXPECT_EQ(cost.flops, 0);
  EXPECT_EQ(cost.bytes, 2 * 60 * 5);
}

TEST(OpCostTest, AnExchangeReadsEveryTermOfASum) {
  const OpCost sum = CostOf(R"(
    %x = input f32[32,10]
    %0 = exchange(%x) {workers=4} : f32[32,10])");
  EXPECT_EQ(sum.flops, 3 * 320);
  EXPECT_EQ(sum.bytes, 4 * (4 + 1) * 320);
  const OpCost part = CostOf(R"(
    %x = input f32[32,10]
    %0 = exchange(%x) {workers=4, to=0, begin=8, size=8} : f32[8,10])");
  EXPECT_EQ(part.bytes, 4 * (4 + 1) * 80);
  const OpCost whole = CostOf(R"(
    %x = input f32[32,10]
    %0 = exchange(%x) {workers=4, from=1, full=40} : f32[32,40])");
  EXPECT_EQ(whole.flops, 0);
  EXPECT_EQ(whole.bytes, 4 * 2 * 1280);
}

TEST(OpCostTest, LeavesAreFree) {
  const OpCost cost = CostOf("%x = input f32[3,17]");
  EXPECT_EQ(cost.flops, 0);
  EXPECT_EQ(cost.bytes, 0);
}

TEST(OpCostTest, ActivationGradAddsItsBiasSum) {
  const OpCost cost = CostOf(R"(
    %y = input f32[3,17]
    %dy = input f32[3,17]
    %0:2 = activation_grad(%y, %dy) {activation=tanh, bias=grad} : f32[3,17], f32[17])");
  EXPECT_EQ(cost.flops, (3 + 1) * 3 * 17);
  EXPECT_EQ(cost.bytes, 4 * (3 * 3 * 17 + 17));
}

// 99 nonzeros in 9 rows: 11 a row, 44 of a batch of 4.
TEST(OpCostTest, SparseOpsCountTheNonzerosOfTheTableOnAverage) {
  const std::string leaves = R"(
    %table = input u8[9,30]
    %indices = input i32[4]
    %w = input f32[30,7]
    %b = input f32[7]
    %dz = input f32[4,7]
    %0 = gather_sparse(%table, %indices) {nonzeros=99} : i32[4,52]
    )";
  const OpCost gather = CostOf(leaves);
  EXPECT_EQ(gather.flops, 0);
  EXPECT_EQ(gather.bytes, 4 * 4 + 4 * 30 + 4 * 44);
  const OpCost matmul = CostOf(
      leaves +
      "%1 = sparse_matmul(%0, %w, %b) {bias=true, activation=relu} : f32[4,7]");
  EXPECT_EQ(matmul.flops, 2 * 44 * 7 + 2 * 4 * 7);
  EXPECT_EQ(matmul.bytes, 4 * (44 + 30 * 7 + 7 + 4 * 7));
  const OpCost outer = CostOf(
      leaves +
      "%1 = sparse_outer(%0, %dz, %w) {rows=30, accumulate=true} : f32[30,7]");
  EXPECT_EQ(outer.flops, 2 * 44 * 7);
  EXPECT_EQ(outer.bytes, 4 * (44 + 4 * 7 + 2 * 30 * 7));
}

TEST(OpCostTest, ASparseBatchOfAnUnknownTableIsTakenAsFull) {
  EXPECT_EQ(CostOf(R"(
    %x = input i32[4,52]
    %w = input f32[30,7]
    %0 = sparse_matmul(%x, %w) : f32[4,7])")
                .flops,
            2 * 4 * 30 * 7);
}

}  // namespace
}  // namespace onestep
