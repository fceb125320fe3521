// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Text(const std::string& lines) {
  return R"(graph {
  %z = input f32[4,3]
  %y = input i32[4]
  %lr = input f32[]
)" + lines +
         "}\n";
}

// The textbook ops up to the gradient %g.
constexpr char kXent[] = R"(
  %l = nll_loss(%z, %y) : f32[] @loss
  %c = count_correct(%z, %y) : f32[] @loss
  %p = softmax(%z) : f32[4,3] @backward
  %d = minus_one_hot(%p, %y) : f32[4,3] @backward
  %g = scale(%d) {alpha=0.25} : f32[4,3] @backward
  result loss = %l
  result correct = %c
)";

void ExpectKept(const std::string& text, const std::string& refusal) {
  const PassResult result = RunPass(FuseLossGrad, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, ElementsAre(refusal));
}

TEST(FuseLossGradTest, MakesOneOpOfSoftmaxLossAndGradient) {
  const PassResult result =
      RunPass(FuseLossGrad, Text(std::string(kXent) + "result g = %g\n"));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y) : f32[], f32[4,3], f32[] @loss
  result loss = %0#0
  result correct = %0#2
  result g = %0#1
)")));
  EXPECT_THAT(result.graph.nodes().back()->fused_from,
              ElementsAre("nll_loss", "count_correct", "softmax",
                          "minus_one_hot", "scale"));
}

TEST(FuseLossGradTest, TakesTheLearningRateIn) {
  const PassResult result = RunPass(FuseLossGrad, Text(std::string(kXent) + R"(
  %s = mul_scalar(%g, %lr) {alpha=-1} : f32[4,3] @backward
  result s = %s
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y, %lr) {scaled=true} : f32[], f32[4,3], f32[] @loss
  result loss = %0#0
  result correct = %0#2
  result s = %0#1
)")));
}

TEST(FuseLossGradTest, TakesTheGradientOfOneRowWithoutScale) {
  const PassResult result = RunPass(FuseLossGrad, R"(graph {
  %z = input f32[1,3]
  %y = input i32[1]
  %p = softmax(%z) : f32[1,3]
  %d = minus_one_hot(%p, %y) : f32[1,3]
  %l = nll_loss(%z, %y) : f32[]
  %e = relu(%d) : f32[1,3]
  result loss = %l
  result d = %d
  result e = %e
})");
  EXPECT_EQ(result.text, Canonical(R"(graph {
  %z = input f32[1,3]
  %y = input i32[1]
  %0:3 = loss_grad(%z, %y) : f32[], f32[1,3], f32[]
  %1 = relu(%0#1) : f32[1,3]
  result loss = %0#0
  result d = %0#1
  result e = %1
})"));
}

TEST(FuseLossGradTest, FusesAGradientWhoseLossNobodyReads) {
  const PassResult result = RunPass(FuseLossGrad, Text(R"(
  %p = softmax(%z) : f32[4,3] @backward
  %d = minus_one_hot(%p, %y) : f32[4,3] @backward
  %g = scale(%d) {alpha=0.25} : f32[4,3] @backward
  result g = %g
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y) : f32[], f32[4,3], f32[] @backward
  result g = %0#1
)")));
}

TEST(FuseLossGradTest, MakesOneOpOfMeanSquaredErrorAndGradient) {
  const PassResult result = RunPass(FuseLossGrad, Text(R"(
  %t = one_hot(%y) {classes=3} : f32[4,3] @loss
  %l = mse_loss(%z, %t) : f32[] @loss
  %c = count_correct(%z, %y) : f32[] @loss
  %g = mse_grad(%z, %t) : f32[4,3] @backward
  %s = mul_scalar(%g, %lr) {alpha=-1} : f32[4,3] @backward
  result loss = %l
  result correct = %c
  result s = %s
)"));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y, %lr) {loss=mse, scaled=true} : f32[], f32[4,3], f32[] @loss
  result loss = %0#0
  result correct = %0#2
  result s = %0#1
)")));
}

TEST(FuseLossGradTest, KeepsALossWithoutItsGradient) {
  const std::string text = Text(R"(
  %l = nll_loss(%z, %y) : f32[]
  %c = count_correct(%z, %y) : f32[]
  result loss = %l
  result correct = %c
)");
  const PassResult result = RunPass(FuseLossGrad, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, IsEmpty());
}

TEST(FuseLossGradTest, KeepsProbabilitiesThatAreRead) {
  ExpectKept(Text(std::string(kXent) + "result g = %g\nresult p = %p\n"),
             "fuse %3: second use of %2 by an output");
}

TEST(FuseLossGradTest, KeepsAnInnerGradientThatIsRead) {
  ExpectKept(Text(std::string(kXent) + R"(
  %e = relu(%d) : f32[4,3]
  result g = %g
  result e = %e
)"),
             "fuse %3: want its only use to be a scale by 1 / 4");
}

TEST(FuseLossGradTest, KeepsAScaleThatIsNotOneByRows) {
  ExpectKept(Text(R"(
  %p = softmax(%z) : f32[4,3]
  %d = minus_one_hot(%p, %y) : f32[4,3]
  %g = scale(%d) {alpha=0.5} : f32[4,3]
  result g = %g
)"),
             "fuse %1: want its only use to be a scale by 1 / 4");
}

TEST(FuseLossGradTest, CarriesTheRowsOfTheMean) {
  const PassResult xent = RunPass(FuseLossGrad, Text(R"(
  %l = nll_loss(%z, %y) {rows=8} : f32[]
  %p = softmax(%z) : f32[4,3]
  %d = minus_one_hot(%p, %y) : f32[4,3]
  %g = scale(%d) {alpha=0.125} : f32[4,3]
  result loss = %l
  result g = %g
)"));
  EXPECT_EQ(xent.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y) {rows=8} : f32[], f32[4,3], f32[]
  result loss = %0#0
  result g = %0#1
)")));
  const PassResult mse = RunPass(FuseLossGrad, Text(R"(
  %t = one_hot(%y) {classes=3} : f32[4,3]
  %l = mse_loss(%z, %t) {rows=8} : f32[]
  %g = mse_grad(%z, %t) {rows=8} : f32[4,3]
  result loss = %l
  result g = %g
)"));
  EXPECT_EQ(mse.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y) {loss=mse, rows=8} : f32[], f32[4,3], f32[]
  result loss = %0#0
  result g = %0#1
)")));
}

TEST(FuseLossGradTest, KeepsALossAndAGradientOfTwoMeans) {
  ExpectKept(Text(R"(
  %l = nll_loss(%z, %y) {rows=8} : f32[]
  %p = softmax(%z) : f32[4,3]
  %d = minus_one_hot(%p, %y) : f32[4,3]
  %g = scale(%d) {alpha=0.25} : f32[4,3]
  result loss = %l
  result g = %g
)"),
             "fuse %2: want its only use to be a scale by 1 / 8");
  ExpectKept(Text(R"(
  %t = one_hot(%y) {classes=3} : f32[4,3]
  %l = mse_loss(%z, %t) : f32[]
  %g = mse_grad(%z, %t) {rows=8} : f32[4,3]
  result loss = %l
  result g = %g
)"),
             "fuse %2: its mean is over 8 rows, that of %1 over 4");
}

TEST(FuseLossGradTest, KeepsASquaredErrorWhoseTargetIsNoOneHot) {
  ExpectKept(Text(R"(
  %t = input f32[4,3]
  %g = mse_grad(%z, %t) : f32[4,3]
  result g = %g
)"),
             "fuse %0: its target is no one_hot");
}

TEST(FuseLossGradTest, KeepsAOneHotThatIsRead) {
  const std::string mse = R"(
  %t = one_hot(%y) {classes=3} : f32[4,3]
  %l = mse_loss(%z, %t) : f32[]
  %g = mse_grad(%z, %t) : f32[4,3]
  result loss = %l
  result g = %g
)";
  ExpectKept(Text(mse + "result t = %t\n"),
             "fuse %2: second use of %0 by an output");
  ExpectKept(Text(mse + "%e = scale(%t) {alpha=2} : f32[4,3]\nresult e = %e\n"),
             "fuse %2: second use of %0 by scale");
}

TEST(FuseLossGradTest, KeepsTheLossOfOtherLabels) {
  const PassResult result = RunPass(FuseLossGrad, Text(R"(
  %y2 = input i32[4]
  %l = nll_loss(%z, %y2) : f32[]
  %c = count_correct(%z, %y2) : f32[]
  %p = softmax(%z) : f32[4,3]
  %d = minus_one_hot(%p, %y) : f32[4,3]
  %g = scale(%d) {alpha=0.25} : f32[4,3]
  result loss = %l
  result correct = %c
  result g = %g
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %y2 = input i32[4]
  %l = nll_loss(%z, %y2) : f32[]
  %c = count_correct(%z, %y2) : f32[]
  %0:3 = loss_grad(%z, %y) : f32[], f32[4,3], f32[]
  result loss = %l
  result correct = %c
  result g = %0#1
)")));
}

TEST(FuseLossGradTest, KeepsALearningRateMadeAfterTheLossIsRead) {
  const PassResult result = RunPass(FuseLossGrad, Text(R"(
  %l = nll_loss(%z, %y) : f32[]
  %late = scale(%l) {alpha=0.5} : f32[]
  %p = softmax(%z) : f32[4,3]
  %d = minus_one_hot(%p, %y) : f32[4,3]
  %g = scale(%d) {alpha=0.25} : f32[4,3]
  %s = mul_scalar(%g, %late) {alpha=-1} : f32[4,3]
  result s = %s
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y) : f32[], f32[4,3], f32[]
  %1 = scale(%0#0) {alpha=0.5} : f32[]
  %2 = mul_scalar(%0#1, %1) {alpha=-1} : f32[4,3]
  result s = %2
)")));
}

TEST(FuseLossGradTest, KeepsALearningRateThatIsTheLoss) {
  const PassResult result = RunPass(FuseLossGrad, Text(R"(
  %l = nll_loss(%z, %y) : f32[]
  %p = softmax(%z) : f32[4,3]
  %d = minus_one_hot(%p, %y) : f32[4,3]
  %g = scale(%d) {alpha=0.25} : f32[4,3]
  %s = mul_scalar(%g, %l) {alpha=-1} : f32[4,3]
  result s = %s
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y) : f32[], f32[4,3], f32[]
  %1 = mul_scalar(%0#1, %0#0) {alpha=-1} : f32[4,3]
  result s = %1
)")));
}

TEST(FuseLossGradTest, KeepsAGradientOfTheTargetItself) {
  ExpectKept(Text(R"(
  %t = one_hot(%y) {classes=3} : f32[4,3]
  %g = mse_grad(%t, %t) : f32[4,3]
  result g = %g
)"),
             "fuse %1: its logits are made by a part of it");
}

TEST(FuseLossGradTest, KeepsAFactorThatIsNotMinusLearningRate) {
  const PassResult result = RunPass(FuseLossGrad, Text(std::string(kXent) + R"(
  %s = mul_scalar(%g, %lr) : f32[4,3] @backward
  result s = %s
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0:3 = loss_grad(%z, %y) : f32[], f32[4,3], f32[] @loss
  %1 = mul_scalar(%0#1, %lr) : f32[4,3] @backward
  result loss = %0#0
  result correct = %0#2
  result s = %1
)")));
}

}  // namespace
}  // namespace onestep
