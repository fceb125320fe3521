// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

using testing::ElementsAre;

class FuseActivationGradTest : public testing::TestWithParam<std::string> {};

TEST_P(FuseActivationGradTest, TakesTheColumnSumIn) {
  const std::string act = GetParam();
  const std::string leaves = R"(graph {
  %a = input f32[4,2]
  %da = input f32[4,2]
)";
  const PassResult result =
      RunPass(FuseActivationGrad,
              leaves + "%0 = " + act + R"(_grad(%a, %da) : f32[4,2] @backward
  %1 = relu(%0) : f32[4,2]
  %2 = reduce_rows(%0) : f32[2] @backward
  result d = %1
  result db = %2
})");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(
      result.text,
      Canonical(leaves + "%0:2 = activation_grad(%a, %da) {activation=" + act +
                R"(, bias=grad} : f32[4,2], f32[2] @backward
  %1 = relu(%0#0) : f32[4,2]
  result d = %1
  result db = %0#1
})"));
  EXPECT_THAT(result.graph.nodes()[2]->fused_from,
              ElementsAre(act + "_grad", "reduce_rows"));
}

INSTANTIATE_TEST_SUITE_P(Activations, FuseActivationGradTest,
                         testing::Values("relu", "tanh", "sigmoid", "gelu"),
                         [](const auto& info) { return info.param; });

TEST(FuseActivationGradTest, TakesTheColumnSumOfTheLossGradientIn) {
  const PassResult result = RunPass(FuseActivationGrad, R"(graph {
  %z = input f32[4,3]
  %y = input i32[4]
  %lr = input f32[]
  %0:3 = loss_grad(%z, %y, %lr) {scaled=true} : f32[], f32[4,3], f32[] @loss
  %1 = reduce_rows(%0#1) : f32[3] @backward
  result loss = %0#0
  result d = %0#1
  result correct = %0#2
  result db = %1
})");
  EXPECT_EQ(result.text, Canonical(R"(graph {
  %z = input f32[4,3]
  %y = input i32[4]
  %lr = input f32[]
  %0:4 = loss_grad(%z, %y, %lr) {scaled=true, bias=grad} : f32[], f32[4,3], f32[], f32[3] @loss
  result loss = %0#0
  result d = %0#1
  result correct = %0#2
  result db = %0#3
})"));
}

TEST(FuseActivationGradTest, KeepsAGradientWithoutColumnSum) {
  const std::string text = R"(graph {
  %a = input f32[4,2]
  %da = input f32[4,2]
  %0 = relu_grad(%a, %da) : f32[4,2]
  result d = %0
})";
  const PassResult result = RunPass(FuseActivationGrad, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

TEST(FuseActivationGradTest, KeepsTheColumnSumOfAnotherOp) {
  const std::string text = R"(graph {
  %a = input f32[4,2]
  %0 = relu(%a) : f32[4,2]
  %1 = reduce_rows(%0) : f32[2]
  result s = %1
})";
  const PassResult result = RunPass(FuseActivationGrad, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

}  // namespace
}  // namespace onestep
