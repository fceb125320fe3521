// SPDX-License-Identifier: Apache-2.0
#include "trainer/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ModelSpec kMlp = {{784, 128, 10}};

std::string TrainText(const ModelSpec& model, const OptimizerSpec& optimizer,
                      int64_t batch = 32) {
  const absl::StatusOr<Graph> graph =
      BuildTrainStep(model, optimizer, 60000, batch);
  EXPECT_OK(graph);
  return graph.ok() ? PrintGraph(*graph) : "";
}

std::vector<std::string> NamesOf(const absl::StatusOr<std::vector<Tensor>>& t) {
  std::vector<std::string> names;
  EXPECT_OK(t);
  if (!t.ok()) return names;
  for (const Tensor& tensor : *t) names.push_back(tensor.name);
  return names;
}

TEST(ModelTest, TheTrainStepIsTheTextbookOne) {
  EXPECT_EQ(TrainText(kMlp, {}), R"(graph {
  %images = input u8[60000,784]
  %labels = input i32[60000]
  %indices = input i32[32]
  %w1 = param f32[784,128]
  %b1 = param f32[128]
  %w2 = param f32[128,10]
  %b2 = param f32[10]
  %lr = input f32[]
  %0 = gather_rows(%images, %indices) : u8[32,784] @forward
  %1 = gather_rows(%labels, %indices) : i32[32] @forward
  %2 = cast(%0) : f32[32,784] @forward
  %3 = scale(%2) {alpha=0.003921569} : f32[32,784] @forward
  %4 = matmul(%3, %w1) : f32[32,128] @forward
  %5 = add_bias(%4, %b1) : f32[32,128] @forward
  %6 = relu(%5) : f32[32,128] @forward
  %7 = matmul(%6, %w2) : f32[32,10] @forward
  %8 = add_bias(%7, %b2) : f32[32,10] @forward
  %9 = nll_loss(%8, %1) : f32[] @loss
  %10 = count_correct(%8, %1) : f32[] @loss
  %11 = softmax(%8) : f32[32,10] @backward
  %12 = minus_one_hot(%11, %1) : f32[32,10] @backward
  %13 = scale(%12) {alpha=0.03125} : f32[32,10] @backward
  %14 = reduce_rows(%13) : f32[10] @backward
  %15 = matmul(%13, %w2) {trans_b=true} : f32[32,128] @backward
  %16 = matmul(%6, %13) {trans_a=true} : f32[128,10] @backward
  %17 = relu_grad(%6, %15) : f32[32,128] @backward
  %18 = reduce_rows(%17) : f32[128] @backward
  %19 = matmul(%3, %17) {trans_a=true} : f32[784,128] @backward
  %20 = sgd_update(%w1, %19, %lr) : f32[784,128] @update
  %21 = sgd_update(%b1, %18, %lr) : f32[128] @update
  %22 = sgd_update(%w2, %16, %lr) : f32[128,10] @update
  %23 = sgd_update(%b2, %14, %lr) : f32[10] @update
  result loss = %9
  result correct = %10
  update w1 = %20
  update b1 = %21
  update w2 = %22
  update b2 = %23
}
)");
}

TEST(ModelTest, ATailIsDividedByItsOwnSize) {
  EXPECT_THAT(TrainText(kMlp, {}, /*batch=*/10), HasSubstr("{alpha=0.1}"));
}

TEST(ModelTest, MomentumUpdatesItsStateToo) {
  const OptimizerSpec optimizer = {OptimizerKind::kMomentum, 0.5f, true, 0.25f};
  const std::string text = TrainText(kMlp, optimizer);
  EXPECT_THAT(text, HasSubstr("%w1.v = param f32[784,128]\n"));
  EXPECT_THAT(text,
              HasSubstr("= momentum_update(%w1, %19, %w1.v, %lr) "
                        "{momentum=0.5, nesterov=true, weight_decay=0.25}"));
  EXPECT_THAT(text, HasSubstr("update w1.v = %20#1\n"));
  EXPECT_THAT(NamesOf(InitOptimizerState(kMlp, optimizer)),
              ElementsAre("w1.v", "b1.v", "w2.v", "b2.v"));
}

TEST(ModelTest, AdamReadsTheStepAndKeepsTwoMoments) {
  const std::string text = TrainText(kMlp, {.kind = OptimizerKind::kAdam});
  EXPECT_THAT(text, HasSubstr("%step = input f32[]\n"));
  EXPECT_THAT(text, HasSubstr("adam_update(%b2, %14, %b2.m, %b2.v, %lr, "
                              "%step)"));
  EXPECT_THAT(text, HasSubstr("update b2.v = %23#2\n"));
  EXPECT_THAT(
      NamesOf(InitOptimizerState({{4, 2}}, {.kind = OptimizerKind::kAdam})),
      ElementsAre("w1.m", "w1.v", "b1.m", "b1.v"));
}

TEST(ModelTest, WeightDecayIsDecoupledForAdamwOnly) {
  OptimizerSpec optimizer = {.kind = OptimizerKind::kAdamW,
                             .weight_decay = 0.5f};
  EXPECT_THAT(TrainText(kMlp, optimizer),
              HasSubstr("{weight_decay=0.5, decoupled=true}"));
  optimizer.kind = OptimizerKind::kAdam;
  EXPECT_THAT(TrainText(kMlp, optimizer), HasSubstr("{weight_decay=0.5} :"));
  optimizer.kind = OptimizerKind::kSgd;
  EXPECT_THAT(TrainText(kMlp, optimizer), HasSubstr("{weight_decay=0.5} :"));
}

TEST(ModelTest, MseComparesWithOneHotLabels) {
  const std::string text =
      TrainText({{784, 128, 10}, Activation::kRelu, Loss::kMse}, {});
  EXPECT_THAT(text, HasSubstr("%9 = one_hot(%1) {classes=10} : f32[32,10]"));
  EXPECT_THAT(text, HasSubstr("%10 = mse_loss(%8, %9) : f32[]"));
}

TEST(ModelTest, AnyDepthAndActivationBuilds) {
  for (const Activation activation :
       {Activation::kRelu, Activation::kTanh, Activation::kSigmoid,
        Activation::kGelu}) {
    for (const std::vector<int64_t>& widths :
         {std::vector<int64_t>{4, 2}, std::vector<int64_t>{64, 256, 256, 10},
          std::vector<int64_t>{5, 4, 3, 2, 1}}) {
      ASSERT_OK_AND_ASSIGN(const Graph graph,
                           BuildTrainStep({widths, activation}, {}, 100, 7));
      EXPECT_OK(graph.Verify());
      for (size_t i = 1; i < widths.size(); ++i) {
        const std::string name = "w" + std::to_string(i);
        const Node* const w = graph.FindLeaf(name);
        ASSERT_NE(w, nullptr) << name;
        EXPECT_EQ(w->types[0], F32({widths[i - 1], widths[i]}));
        EXPECT_TRUE(graph.UpdateOf(w));
      }
    }
  }
}

TEST(ModelTest, TheEvalStepGivesProbabilitiesAndUpdatesNothing) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, BuildEvalStep(kMlp, 100, 8));
  const std::string text = PrintGraph(graph);
  EXPECT_THAT(text, HasSubstr("result loss = %9\n"));
  EXPECT_THAT(text, HasSubstr("result correct = %10\n"));
  EXPECT_THAT(text, HasSubstr("%11 = softmax(%8) : f32[8,10]"));
  EXPECT_THAT(text, HasSubstr("result probabilities = %11\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("update ")));
}

TEST(ModelTest, ParsesWidths) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> widths,
                       ParseWidths("784-128-10"));
  EXPECT_THAT(widths, ElementsAre(784, 128, 10));
  EXPECT_EQ(kMlp.ToString(), "784-128-10");
  EXPECT_EQ(kMlp.num_parameters(), 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_THAT(ParseWidths("784"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want two widths or more")));
  EXPECT_THAT(ParseWidths("64-16777216-16777216-10"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want at most 268435456 parameters")));
  EXPECT_OK(ParseWidths("784-8192-8192-10"));
}

// Mean and variance of n draws; both have a standard error below 1 %% here.
void ExpectMoments(const Tensor& w, double variance, double bound) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < w.num_elements(); ++i) {
    const double x = w.data.as<float>()[i];
    ASSERT_LE(std::abs(x), bound);
    sum += x;
    squares += x * x;
  }
  const double n = static_cast<double>(w.num_elements());
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n / variance, 1, 5 * std::sqrt(2 / n));
}

TEST(ModelTest, HeWeightsHaveVarianceTwoOverFanIn) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> params,
                       InitParams(kMlp, Init::kHe, 1));
  ASSERT_EQ(params.size(), 4u);
  ExpectMoments(params[0], 2.0 / 784, /*bound=*/1);
}

TEST(ModelTest, XavierWeightsAreUniformWithinTheirBound) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> params,
                       InitParams(kMlp, Init::kXavier, 1));
  const double bound = std::sqrt(6.0 / (784 + 128));
  ExpectMoments(params[0], bound * bound / 3, bound * 1.0001);
}

TEST(ModelTest, BiasesAndOptimizerStateBeginAtZero) {
  ASSERT_OK_AND_ASSIGN(std::vector<Tensor> tensors,
                       InitParams(kMlp, Init::kHe, 1));
  ASSERT_OK_AND_ASSIGN(
      std::vector<Tensor> states,
      InitOptimizerState(kMlp, {.kind = OptimizerKind::kAdam}));
  states.push_back(std::move(tensors[1]));
  states.push_back(std::move(tensors[3]));
  for (const Tensor& tensor : states) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      ASSERT_EQ(tensor.data.as<float>()[i], 0) << tensor.name;
    }
  }
}

TEST(ModelTest, WeightsDependOnTheSeedAndOnNothingElse) {
  const auto first_weights = [](const ModelSpec& model, uint64_t seed) {
    absl::StatusOr<std::vector<Tensor>> params =
        InitParams(model, Init::kHe, seed);
    EXPECT_OK(params);
    const float* const w = params->front().data.as<float>();
    return std::vector<float>(w, w + 784 * 128);
  };
  const std::vector<float> weights = first_weights(kMlp, 1);
  EXPECT_EQ(weights, first_weights(kMlp, 1));
  EXPECT_EQ(weights, first_weights({{784, 128, 64, 10}}, 1));
  EXPECT_NE(weights, first_weights(kMlp, 2));
}

TEST(ModelTest, TheLayersOfAModelAreDrawnIndependently) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> params,
                       InitParams({{16, 16, 16}}, Init::kHe, 1));
  EXPECT_NE(std::memcmp(params[0].data.data(), params[2].data.data(),
                        params[0].data.bytes()),
            0);
}

}  // namespace
}  // namespace onestep
