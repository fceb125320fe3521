// SPDX-License-Identifier: Apache-2.0
// The oracle runs fused ops as the textbook ops that they stand for.
#include "tests/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

TensorMap RunText(const std::string& text, const TensorMap& bindings) {
  const absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_OK(graph);
  if (!graph.ok()) return {};
  absl::StatusOr<TensorMap> outputs = Evaluate(*graph, bindings);
  EXPECT_OK(outputs);
  return outputs.ok() ? *outputs : TensorMap();
}

TEST(OracleTest, GivesResultsByNameAndUpdatesByParam) {
  const TensorMap out = RunText(R"(graph {
    %w = param f32[2]
    %dw = input f32[2]
    %lr = input f32[]
    %0 = sgd_update(%w, %dw, %lr) : f32[2]
    %1 = scale(%0) {alpha=2} : f32[2]
    update w = %0
    result doubled = %1
  })",
                                {{"w", {1, 2}}, {"dw", {4, 2}}, {"lr", {0.5}}});
  EXPECT_THAT(out.at("w"), ElementsAre(-1, 1));
  EXPECT_THAT(out.at("doubled"), ElementsAre(-2, 2));
}

TEST(OracleTest, AMissingBindingIsNotFound) {
  Graph graph;
  graph.AddInput("x", F32({2}));
  EXPECT_THAT(Evaluate(graph, {}),
              StatusIs(absl::StatusCode::kNotFound,
                       "oracle: want a value of x, got none"));
}

TEST(OracleTest, ABindingOfTheWrongSizeIsRefused) {
  Graph graph;
  graph.AddInput("x", F32({2}));
  EXPECT_THAT(Evaluate(graph, {{"x", {1, 2, 3}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "oracle: x: want 2 elements, got 3"));
}

TEST(OracleTest, TwoOutputsOfOneNameAreRefused) {
  Graph graph;
  const Value x = graph.AddInput("x", F32({}));
  graph.AddResult("y", x);
  graph.AddResult("y", x);
  EXPECT_THAT(Evaluate(graph, {{"x", {1}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "oracle: two outputs named y"));
}

TEST(OracleTest, SlicesCutRowsOrColumns) {
  const TensorMap out = RunText(R"(graph {
    %x = input f32[3,2]
    %b = input f32[3]
    %0 = slice(%x) {begin=1, size=2} : f32[2,2]
    %1 = slice(%x) {axis=1, begin=1, size=1} : f32[3,1]
    %2 = slice(%b) {begin=2, size=1} : f32[1]
    result rows = %0
    result cols = %1
    result last = %2
  })",
                                {{"x", {1, 2, 3, 4, 5, 6}}, {"b", {7, 8, 9}}});
  EXPECT_THAT(out.at("rows"), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(out.at("cols"), ElementsAre(2, 4, 6));
  EXPECT_THAT(out.at("last"), ElementsAre(9));
}

TEST(OracleTest, OneWorkerExchangesWithItself) {
  const TensorMap out = RunText(R"(graph {
    %x = input f32[3,2]
    %s = input f32[]
    %0 = exchange(%x) {workers=1, from=1, to=0, full=2, begin=1, size=1} : f32[1,2]
    %1 = exchange(%s) {index=1, workers=1} : f32[]
    result row = %0
    result sum = %1
  })",
                                {{"x", {1, 2, 3, 4, 5, 6}}, {"s", {7}}});
  EXPECT_THAT(out.at("row"), ElementsAre(3, 4));
  EXPECT_THAT(out.at("sum"), ElementsAre(7));
}

TEST(OracleTest, AnExchangeOfMoreWorkersIsRefused) {
  Graph graph;
  const Value x = graph.AddInput("x", F32({2}));
  graph.Add(OpKind::kExchange, {x}, ExchangeAttrs{.workers = 2});
  EXPECT_THAT(Evaluate(graph, {{"x", {1, 2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "oracle: exchange: want 1 worker, got 2"));
}

TEST(OracleTest, DataOpsGatherConvertAndMark) {
  const TensorMap out =
      RunText(R"(graph {
    %table = input u8[3,2]
    %indices = input i32[2]
    %0 = gather_rows(%table, %indices) : u8[2,2]
    %1 = cast(%0) : f32[2,2]
    %2 = gather_convert(%table, %indices) {alpha=0.5} : f32[2,2]
    %3 = one_hot(%indices) {classes=3} : f32[2,3]
    result rows = %1
    result halves = %2
    result marks = %3
  })",
              {{"table", {0, 1, 10, 11, 20, 21}}, {"indices", {2, 0}}});
  EXPECT_THAT(out.at("rows"), ElementsAre(20, 21, 0, 1));
  EXPECT_THAT(out.at("halves"), ElementsAre(10, 10.5, 0, 0.5));
  EXPECT_THAT(out.at("marks"), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(OracleTest, MatMulEndsWithBiasAndActivation) {
  const TensorMap out =
      RunText(R"(graph {
    %a = input f32[2,1]
    %b = input f32[1,2]
    %bias = input f32[2]
    %0 = matmul(%a, %b, %bias) {bias=true, activation=relu} : f32[2,2]
    result y = %0
  })",
              {{"a", {1, -1}}, {"b", {2, 3}}, {"bias", {1, 4}}});
  EXPECT_THAT(out.at("y"), ElementsAre(3, 7, 0, 1));
}

TEST(OracleTest, MatMulAccumulatesOntoItsLastOperand) {
  const TensorMap out =
      RunText(R"(graph {
    %a = input f32[2,1]
    %b = input f32[1,2]
    %c = input f32[2,2]
    %0 = matmul(%a, %b, %c) {accumulate=true} : f32[2,2]
    result y = %0
  })",
              {{"a", {1, -1}}, {"b", {2, 3}}, {"c", {10, 20, 30, 40}}});
  EXPECT_THAT(out.at("y"), ElementsAre(12, 23, 28, 37));
}

const TensorMap& LossBindings() {
  static const auto* const bindings =
      new TensorMap{{"z", {1, 2, -1, 0.5, 0.25, 3}},
                    {"labels", {1, 0}},
                    {"table", {2, 0, 2, 1}},
                    {"indices", {3, 1}},
                    {"lr", {0.5}},
                    {"b", {1, 2, 3}}};
  return *bindings;
}

// Sums of a few numbers of size 1, in another order.
constexpr double kRounding = 1e-15;

TEST(OracleTest, LossGradIsTheTextbookLossAndGradient) {
  const TensorMap fused = RunText(R"(graph {
    %z = input f32[2,3]
    %labels = input i32[2]
    %0:3 = loss_grad(%z, %labels) : f32[], f32[2,3], f32[]
    result loss = %0#0
    result dz = %0#1
    result correct = %0#2
  })",
                                  LossBindings());
  const TensorMap textbook = RunText(R"(graph {
    %z = input f32[2,3]
    %labels = input i32[2]
    %0 = nll_loss(%z, %labels) : f32[]
    %1 = softmax(%z) : f32[2,3]
    %2 = minus_one_hot(%1, %labels) : f32[2,3]
    %3 = scale(%2) {alpha=0.5} : f32[2,3]
    %4 = count_correct(%z, %labels) : f32[]
    result loss = %0
    result dz = %3
    result correct = %4
  })",
                                     LossBindings());
  EXPECT_EQ(fused, textbook);
  EXPECT_THAT(fused.at("correct"), ElementsAre(1));
}

TEST(OracleTest, LossGradGathersScalesAndUpdatesItsBias) {
  const TensorMap fused = RunText(R"(graph {
    %z = input f32[2,3]
    %table = input i32[4]
    %indices = input i32[2]
    %lr = input f32[]
    %b = input f32[3]
    %0:4 = loss_grad(%z, %table, %indices, %lr, %b) {gather=true, scaled=true, bias=update} : f32[], f32[2,3], f32[], f32[3]
    result dz = %0#1
    result b_new = %0#3
  })",
                                  LossBindings());
  const TensorMap textbook = RunText(R"(graph {
    %z = input f32[2,3]
    %table = input i32[4]
    %indices = input i32[2]
    %lr = input f32[]
    %b = input f32[3]
    %0 = gather_rows(%table, %indices) : i32[2]
    %1 = softmax(%z) : f32[2,3]
    %2 = minus_one_hot(%1, %0) : f32[2,3]
    %3 = scale(%2) {alpha=0.5} : f32[2,3]
    %4 = mul_scalar(%3, %lr) {alpha=-1} : f32[2,3]
    %5 = reduce_rows(%3) : f32[3]
    %6 = sgd_update(%b, %5, %lr) : f32[3]
    result dz = %4
    result b_new = %6
  })",
                                     LossBindings());
  EXPECT_THAT(fused.at("dz"),
              Pointwise(DoubleNear(kRounding), textbook.at("dz")));
  EXPECT_THAT(fused.at("b_new"),
              Pointwise(DoubleNear(kRounding), textbook.at("b_new")));
}

TEST(OracleTest, LossGradOfMseComparesWithTheOneHotLabels) {
  const TensorMap fused = RunText(R"(graph {
    %z = input f32[2,3]
    %labels = input i32[2]
    %0:4 = loss_grad(%z, %labels) {loss=mse, bias=grad} : f32[], f32[2,3], f32[], f32[3]
    result loss = %0#0
    result dz = %0#1
    result correct = %0#2
    result db = %0#3
  })",
                                  LossBindings());
  const TensorMap textbook = RunText(R"(graph {
    %z = input f32[2,3]
    %labels = input i32[2]
    %0 = one_hot(%labels) {classes=3} : f32[2,3]
    %1 = mse_loss(%z, %0) : f32[]
    %2 = mse_grad(%z, %0) : f32[2,3]
    %3 = count_correct(%z, %labels) : f32[]
    %4 = reduce_rows(%2) : f32[3]
    result loss = %1
    result dz = %2
    result correct = %3
    result db = %4
  })",
                                     LossBindings());
  EXPECT_EQ(fused, textbook);
}

TEST(OracleTest, ActivationGradSumsItsBiasGradient) {
  const TensorMap bindings = {
      {"y", {0.5, -0.5, 0.25, 0}}, {"dy", {4, 4, 16, 1}}, {"b", {100, 200}}};
  const TensorMap out = RunText(R"(graph {
    %y = input f32[2,2]
    %dy = input f32[2,2]
    %b = input f32[2]
    %0:2 = activation_grad(%y, %dy) {activation=tanh, bias=grad} : f32[2,2], f32[2]
    %1:2 = activation_grad(%y, %dy, %b) {activation=relu, bias=update} : f32[2,2], f32[2]
    result tanh_dx = %0#0
    result tanh_db = %0#1
    result relu_dx = %1#0
    result b_new = %1#1
  })",
                                bindings);
  EXPECT_THAT(out.at("tanh_dx"), ElementsAre(3, 3, 15, 1));
  EXPECT_THAT(out.at("tanh_db"), ElementsAre(18, 4));
  EXPECT_THAT(out.at("relu_dx"), ElementsAre(4, 0, 16, 0));
  EXPECT_THAT(out.at("b_new"), ElementsAre(120, 200));
}

TEST(OracleTest, UpdatesGiveTheirState) {
  const TensorMap out = RunText(R"(graph {
    %w = param f32[1]
    %dw = input f32[1]
    %v = param f32[1]
    %m = param f32[1]
    %lr = input f32[]
    %step = input f32[]
    %0:2 = momentum_update(%w, %dw, %v, %lr) {momentum=0.5, nesterov=true} : f32[1], f32[1]
    %1:3 = adam_update(%w, %dw, %m, %v, %lr, %step) {beta1=0.5, beta2=0.75, epsilon=1} : f32[1], f32[1], f32[1]
    result nesterov_w = %0#0
    result nesterov_v = %0#1
    result adam_w = %1#0
    result adam_m = %1#1
    result adam_v = %1#2
  })",
                                {{"w", {1}},
                                 {"dw", {2}},
                                 {"v", {0}},
                                 {"m", {0}},
                                 {"lr", {0.5}},
                                 {"step", {1}}});
  EXPECT_THAT(out.at("nesterov_v"), ElementsAre(2));
  EXPECT_THAT(out.at("nesterov_w"), ElementsAre(-0.5));  // 1 - (2 + 1) / 2
  EXPECT_THAT(out.at("adam_m"), ElementsAre(1));
  EXPECT_THAT(out.at("adam_v"), ElementsAre(1));
  // mhat = 2, vhat = 4: 1 - 0.5 * 2 / (2 + 1)
  EXPECT_THAT(out.at("adam_w"), ElementsAre(DoubleNear(2.0 / 3, kRounding)));
}

}  // namespace
}  // namespace onestep
