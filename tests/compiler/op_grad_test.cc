// SPDX-License-Identifier: Apache-2.0
// Every gradient rule against central differences of the float64 oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/text.h"
#include "compiler/passes/autodiff.h"
#include "tests/oracle.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

constexpr int kSizes[] = {1, 2, 3, 7, 17};

constexpr double kStep = 1e-5;
// Relative to the largest element of the gradient. 1/batch is a float32
// attribute, right to 6e-8; the differences are right to about 1e-10.
constexpr double kTolerance = 1e-6;
// For gradients that are 0: rounding of the loss, 1e-16 * 10 / kStep.
constexpr double kFloor = 1e-10;

// Values in [-1, 1), the same on every platform; labels cycle over `classes`.
TensorMap RandomBindings(const Graph& graph, int classes) {
  std::mt19937 random(1);
  TensorMap bindings;
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf)) continue;
    std::vector<double>& values = bindings[node->name()];
    values.resize(node->types[0].num_elements());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = node->types[0].dtype == DType::kI32
                      ? static_cast<double>((2 * i + 1) % classes)
                      : static_cast<double>(random()) / 0x1p31 - 1;
    }
  }
  return bindings;
}

double LossOf(const Graph& graph, const TensorMap& bindings) {
  const absl::StatusOr<TensorMap> outputs = Evaluate(graph, bindings);
  EXPECT_OK(outputs);
  return outputs.ok() ? outputs->at("loss")[0] : NAN;
}

std::vector<double> CentralDifferences(const Graph& graph, TensorMap bindings,
                                       const std::string& name) {
  std::vector<double> gradient;
  for (double& x : bindings[name]) {
    const double at = x;
    x = at + kStep;
    const double above = LossOf(graph, bindings);
    x = at - kStep;
    const double below = LossOf(graph, bindings);
    x = at;
    gradient.push_back((above - below) / (2 * kStep));
  }
  return gradient;
}

// From the node at `begin` on.
void ExpectNoDeadNode(const Graph& graph, int begin) {
  for (int i = begin; i < graph.size(); ++i) {
    Node& node = *graph.nodes()[i];
    EXPECT_GT(graph.CountUses(node.result()), 0) << "dead " << node.op();
  }
}

// Differentiates the graph's result `loss` with respect to its params.
void CheckGradients(const std::string& text, int classes = 1) {
  SCOPED_TRACE(text);
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(text));
  const TensorMap bindings = RandomBindings(graph, classes);

  Graph step = graph.Clone();
  std::vector<Value> params;
  for (const auto& node : step.nodes()) {
    if (node->kind == OpKind::kParam) params.push_back(node->result());
  }
  ASSERT_FALSE(params.empty());
  ASSERT_OK_AND_ASSIGN(const std::vector<Value> gradients,
                       Gradients(step, step.outputs()[0].value, params));
  ASSERT_EQ(gradients.size(), params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    ASSERT_EQ(gradients[i].type(), params[i].type());
    step.AddResult("d_" + params[i].node->name(), gradients[i]);
  }
  ASSERT_OK(step.Verify());
  ExpectNoDeadNode(step, graph.size());
  ASSERT_OK_AND_ASSIGN(const TensorMap outputs, Evaluate(step, bindings));

  for (Value param : params) {
    const std::string& name = param.node->name();
    const std::vector<double> want = CentralDifferences(graph, bindings, name);
    const std::vector<double>& got = outputs.at("d_" + name);
    double largest = 0;
    for (double v : want) largest = std::max(largest, std::fabs(v));
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], kTolerance * largest + kFloor)
          << "d_" << name << " " << param.type().ToString() << ": element "
          << i;
    }
  }
}

// A graph for each op with a gradient rule: $0 rows, $1 columns, $2 inner,
// $3 and $4 twice the rows and columns.
// Where the op is not a loss, an mse_loss with a random target sends it a
// gradient that differs from element to element.
const std::multimap<std::string, std::string>& Cases() {
  static const auto* const cases =
      new std::multimap<std::string, std::string>{{"scale", R"(graph {
        %x = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = scale(%x) {alpha=-2.5} : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"scale", R"(graph {
        %x = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = mse_loss(%x, %t) : f32[]
        %1 = scale(%0) {alpha=-2.5} : f32[]
        result loss = %1
      })"},
                                                  {"mul_scalar", R"(graph {
        %x = param f32[$0,$1]
        %s = input f32[]
        %t = input f32[$0,$1]
        %0 = mul_scalar(%x, %s) {alpha=1.5} : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"add", R"(graph {
        %x = param f32[$0,$1]
        %y = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = add(%x, %y) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"mul", R"(graph {
        %x = param f32[$0,$1]
        %y = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = mul(%x, %y) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"mul", R"(graph {
        %x = param f32[]
        %y = param f32[]
        %0 = mul(%x, %y) : f32[]
        result loss = %0
      })"},
                                                  {"matmul", R"(graph {
        %a = param f32[$0,$2]
        %b = param f32[$2,$1]
        %t = input f32[$0,$1]
        %0 = matmul(%a, %b) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"matmul", R"(graph {
        %a = param f32[$2,$0]
        %b = param f32[$2,$1]
        %t = input f32[$0,$1]
        %0 = matmul(%a, %b) {trans_a=true} : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"matmul", R"(graph {
        %a = param f32[$0,$2]
        %b = param f32[$1,$2]
        %t = input f32[$0,$1]
        %0 = matmul(%a, %b) {trans_b=true} : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"matmul", R"(graph {
        %a = param f32[$2,$0]
        %b = param f32[$1,$2]
        %t = input f32[$0,$1]
        %0 = matmul(%a, %b) {trans_a=true, trans_b=true} : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"block_matmul", R"(graph {
        %a = param f32[$0,$2]
        %b = param f32[$2,$1]
        %t = input f32[$0,$1]
        %0 = block_matmul(%a, %b) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"block_matmul", R"(graph {
        %a = param f32[6,$0]
        %b = param f32[6,$1]
        %0 = block_matmul(%a, %b) {blocks=2, trans_a=true} : f32[$3,$1]
        %t = input f32[$3,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"block_matmul", R"(graph {
        %a = param f32[$3,$2]
        %b = param f32[$4,$2]
        %t = input f32[$3,$1]
        %0 = block_matmul(%a, %b) {blocks=2, trans_b=true} : f32[$3,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"block_matmul", R"(graph {
        %a = param f32[6,$0]
        %b = param f32[$4,3]
        %t = input f32[$3,$1]
        %0 = block_matmul(%a, %b) {blocks=2, trans_a=true, trans_b=true} : f32[$3,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"gather_rows", R"(graph {
        %x = param f32[$1,$2]
        %i = input i32[$0]
        %t = input f32[$0,$2]
        %0 = gather_rows(%x, %i) : f32[$0,$2]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"gather_rows", R"(graph {
        %x = param f32[$1]
        %i = input i32[$0]
        %t = input f32[$0]
        %0 = gather_rows(%x, %i) : f32[$0]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"scatter_add", R"(graph {
        %x = param f32[$1,$2]
        %i = input i32[$0]
        %y = param f32[$0,$2]
        %t = input f32[$1,$2]
        %0 = scatter_add(%x, %i, %y) : f32[$1,$2]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"sigmoid_bce", R"(graph {
        %z = param f32[$0,$1]
        %mask = input f32[$0]
        %w = input f32[1,$1]
        %0 = sigmoid_bce(%z, %mask, %w) {positives=1} : f32[]
        result loss = %0
      })"},
                                                  {"sigmoid_bce", R"(graph {
        %z = param f32[$3,$1]
        %mask = input f32[$3]
        %w = input f32[2,$1]
        %y = input f32[2,$1]
        %s = input f32[]
        %0 = sigmoid_bce(%z, %mask, %w, %y) : f32[]
        %1 = mul_scalar(%0, %s) : f32[]
        result loss = %1
      })"},
                                                  {"add_bias", R"(graph {
        %x = param f32[$0,$1]
        %b = param f32[$1]
        %t = input f32[$0,$1]
        %0 = add_bias(%x, %b) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"reduce_rows", R"(graph {
        %x = param f32[$0,$1]
        %t = input f32[$1]
        %0 = reduce_rows(%x) : f32[$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"broadcast_rows", R"(graph {
        %x = param f32[$1]
        %t = input f32[$0,$1]
        %0 = broadcast_rows(%x) {rows=$0} : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"relu", R"(graph {
        %x = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = relu(%x) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"tanh", R"(graph {
        %x = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = tanh(%x) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"sigmoid", R"(graph {
        %x = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = sigmoid(%x) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"gelu", R"(graph {
        %x = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = gelu(%x) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"softmax", R"(graph {
        %x = param f32[$0,$1]
        %t = input f32[$0,$1]
        %0 = softmax(%x) : f32[$0,$1]
        %1 = mse_loss(%0, %t) : f32[]
        result loss = %1
      })"},
                                                  {"nll_loss", R"(graph {
        %z = param f32[$0,$1]
        %labels = input i32[$0]
        %0 = nll_loss(%z, %labels) : f32[]
        result loss = %0
      })"},
                                                  {"nll_loss", R"(graph {
        %z = param f32[$0,$1]
        %labels = input i32[$0]
        %s = input f32[]
        %0 = nll_loss(%z, %labels) : f32[]
        %1 = mul_scalar(%0, %s) : f32[]
        result loss = %1
      })"},
                                                  {"nll_loss", R"(graph {
        %z = param f32[$0,$1]
        %labels = input i32[$0]
        %0 = nll_loss(%z, %labels) {rows=20} : f32[]
        result loss = %0
      })"},
                                                  {"mse_loss", R"(graph {
        %y = param f32[$0,$1]
        %t = param f32[$0,$1]
        %0 = mse_loss(%y, %t) : f32[]
        result loss = %0
      })"},
                                                  {"mse_loss", R"(graph {
        %y = param f32[$0,$1]
        %t = param f32[$0,$1]
        %0 = mse_loss(%y, %t) {rows=20} : f32[]
        result loss = %0
      })"},
                                                  {"mse_loss", R"(graph {
        %y = param f32[$0,$1]
        %t = param f32[$0,$1]
        %s = input f32[]
        %0 = mse_loss(%y, %t) : f32[]
        %1 = mul_scalar(%0, %s) : f32[]
        result loss = %1
      })"}};
  return *cases;
}

class OpGradTest : public testing::TestWithParam<std::string> {};

TEST_P(OpGradTest, MatchesCentralDifferencesAtAllSizes) {
  const auto [begin, end] = Cases().equal_range(GetParam());
  ASSERT_NE(begin, end) << "no case";
  for (auto it = begin; it != end; ++it) {
    for (int rows : kSizes) {
      for (int cols : kSizes) {
        CheckGradients(absl::Substitute(it->second, rows, cols, /*inner=*/3,
                                        2 * rows, 2 * cols),
                       /*classes=*/cols);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(OpGradTest, MakesNoNodeForAnOperandThatIsNotWanted) {
  const auto [begin, end] = Cases().equal_range(GetParam());
  for (auto it = begin; it != end; ++it) {
    ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(absl::Substitute(
                                                it->second, 2, 3, 3, 4, 6)));
    for (int i = 0; i < graph.size(); ++i) {
      if (graph.nodes()[i]->kind != OpKind::kParam) continue;
      Graph step = graph.Clone();
      ASSERT_OK_AND_ASSIGN(const std::vector<Value> gradients,
                           Gradients(step, step.outputs()[0].value,
                                     {step.nodes()[i]->result()}));
      step.AddResult("gradient", gradients[0]);
      ExpectNoDeadNode(step, graph.size());
    }
  }
}

// From the op table, so that a new op without a case fails. A constant has no
// operand to differentiate.
std::vector<std::string> DifferentiableOps() {
  std::vector<std::string> names;
  for (const OpDef& def : AllOps()) {
    if (!def.is_differentiable() || def.kind == OpKind::kConstant) continue;
    if (def.rules.names == nullptr) {
      names.push_back(def.name);
      continue;
    }
    for (const OpName& name : def.rules.names()) names.push_back(name.text);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, OpGradTest,
                         testing::ValuesIn(DifferentiableOps()),
                         [](const auto& info) { return info.param; });

TEST(OpGradMatMulTest, MatchesCentralDifferencesAtAllInnerSizes) {
  const auto [begin, end] = Cases().equal_range("matmul");
  for (auto it = begin; it != end; ++it) {
    for (int inner : kSizes) {
      CheckGradients(absl::Substitute(it->second, 2, 7, inner));
      if (HasFatalFailure()) return;
    }
  }
}

// ---- whole nets ------------------------------------------------------------

class NetGradTest
    : public testing::TestWithParam<std::tuple<std::string, Loss>> {};

TEST_P(NetGradTest, TwoHiddenLayersMatchCentralDifferences) {
  const auto& [activation, loss] = GetParam();
  const std::string loss_lines = loss == Loss::kSoftmaxXent ? R"(
        %8 = nll_loss(%7, %labels) : f32[]
        result loss = %8)"
                                                            : R"(
        %8 = one_hot(%labels) {classes=3} : f32[2,3]
        %9 = mse_loss(%7, %8) : f32[]
        result loss = %9)";
  CheckGradients(absl::Substitute(R"(graph {
        %x = input f32[2,7]
        %labels = input i32[2]
        %w1 = param f32[7,17]
        %b1 = param f32[17]
        %w2 = param f32[17,3]
        %b2 = param f32[3]
        %w3 = param f32[3,3]
        %b3 = param f32[3]
        %0 = matmul(%x, %w1) : f32[2,17]
        %1 = add_bias(%0, %b1) : f32[2,17]
        %2 = $0(%1) : f32[2,17]
        %3 = matmul(%2, %w2) : f32[2,3]
        %4 = add_bias(%3, %b2) : f32[2,3]
        %5 = $0(%4) : f32[2,3]
        %6 = matmul(%5, %w3) : f32[2,3]
        %7 = add_bias(%6, %b3) : f32[2,3]$1
      })",
                                  activation, loss_lines),
                 /*classes=*/3);
}

INSTANTIATE_TEST_SUITE_P(
    Nets, NetGradTest,
    testing::Combine(testing::Values("relu", "tanh", "sigmoid", "gelu"),
                     testing::Values(Loss::kSoftmaxXent, Loss::kMse)),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_",
                          ToString(std::get<1>(info.param)));
    });

TEST(NetGradTest, AParamUsedTwiceGetsBothContributions) {
  CheckGradients(R"(graph {
    %x = input f32[2,3]
    %labels = input i32[2]
    %w = param f32[3,3]
    %0 = matmul(%x, %w) : f32[2,3]
    %1 = tanh(%0) : f32[2,3]
    %2 = matmul(%1, %w) {trans_b=true} : f32[2,3]
    %3 = nll_loss(%2, %labels) : f32[]
    result loss = %3
  })",
                 /*classes=*/3);
}

TEST(NetGradTest, AParamThatIsBothOperandsGetsBothContributions) {
  CheckGradients(R"(graph {
    %w = param f32[3,3]
    %t = input f32[3,3]
    %0 = mul(%w, %w) : f32[3,3]
    %1 = matmul(%0, %0) {trans_a=true} : f32[3,3]
    %2 = add(%1, %1) : f32[3,3]
    %3 = mse_loss(%2, %t) : f32[]
    result loss = %3
  })");
}

TEST(NetGradTest, AResidualSumsBothPaths) {
  CheckGradients(R"(graph {
    %x = param f32[2,7]
    %w = param f32[7,7]
    %t = input f32[2,7]
    %0 = matmul(%x, %w) : f32[2,7]
    %1 = sigmoid(%0) : f32[2,7]
    %2 = add(%x, %1) : f32[2,7]
    %3 = mse_loss(%2, %t) : f32[]
    result loss = %3
  })");
}

// ---- refusals --------------------------------------------------------------

// The status of differentiating with respect to the param `x`.
absl::Status GradientStatus(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  if (!graph.ok()) return graph.status();
  return Gradients(*graph, graph->outputs()[0].value,
                   {graph->FindLeaf("x")->result()})
      .status();
}

TEST(OpGradRefusalTest, OpsWithoutARuleSayTheirName) {
  for (const OpDef& def : AllOps()) {
    if (def.is_differentiable()) continue;
    Graph graph;
    Node node;
    node.kind = def.kind;
    node.attrs = def.default_attrs;
    EXPECT_THAT(def.rules.grad({graph, node, {}, {}}),
                StatusIs(absl::StatusCode::kUnimplemented,
                         absl::StrCat(def.name, ": has no gradient")));
  }
}

TEST(OpGradRefusalTest, AFusedMatMulIsRefused) {
  EXPECT_THAT(GradientStatus(R"(graph {
                %x = param f32[2,3]
                %w = param f32[3,7]
                %b = param f32[7]
                %t = input f32[2,7]
                %0 = matmul(%x, %w, %b) {bias=true} : f32[2,7]
                %1 = mse_loss(%0, %t) : f32[]
                result loss = %1
              })"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "matmul: gradient of a fused matmul"));
}

TEST(OpGradRefusalTest, WhatWeighsThePairsOfASigmoidBceIsRefused) {
  EXPECT_THAT(GradientStatus(R"(graph {
                %z = input f32[2,3]
                %mask = input f32[2]
                %x = param f32[1,3]
                %0 = sigmoid_bce(%z, %mask, %x) : f32[]
                result loss = %0
              })"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "sigmoid_bce: gradient of what weighs the pairs"));
}

TEST(OpGradRefusalTest, TheScalarOfMulScalarIsRefused) {
  EXPECT_THAT(GradientStatus(R"(graph {
                %x = param f32[]
                %y = input f32[]
                %0 = mul_scalar(%y, %x) : f32[]
                result loss = %0
              })"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "mul_scalar: gradient of the scalar"));
}

}  // namespace
}  // namespace onestep
