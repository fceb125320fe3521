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
  %a = input f32[4,2]
  %da = input f32[4,2]
  %y = input i32[4]
  %b = param f32[2]
)" + lines +
         "}\n";
}

constexpr char kGrad[] =
    "%d:2 = activation_grad(%a, %da) {activation=relu, bias=grad} : f32[4,2], "
    "f32[2] @backward\n";

void ExpectKept(const std::string& text, const std::string& refusal) {
  const PassResult result = RunPass(FuseBiasUpdate, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, ElementsAre(refusal));
}

TEST(FuseBiasUpdateTest, AddsToTheBiasInTheActivationGradient) {
  const std::string before = "%0 = add_bias(%a, %b) : f32[4,2]\n";
  const PassResult result = RunPass(FuseBiasUpdate, Text(before + kGrad + R"(
  %1 = add(%b, %d#1) : f32[2] @update
  update b = %1
  result z = %0
  result d = %d#0
)"));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(Text(before + R"(
  %d:2 = activation_grad(%a, %da, %b) {activation=relu, bias=update} : f32[4,2], f32[2] @backward
  update b = %d#1
  result z = %0
  result d = %d#0
)")));
  EXPECT_TRUE(InPlaceLegal(result.graph));
}

TEST(FuseBiasUpdateTest, AddsToTheBiasInTheLossGradient) {
  const PassResult result = RunPass(FuseBiasUpdate, Text(R"(
  %0:4 = loss_grad(%a, %y) {bias=grad} : f32[], f32[4,2], f32[], f32[2] @loss
  %1 = add(%0#3, %b) : f32[2] @update
  update b = %1
  result loss = %0#0
  result d = %0#1
  result correct = %0#2
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0:4 = loss_grad(%a, %y, %b) {bias=update} : f32[], f32[4,2], f32[], f32[2] @loss
  update b = %0#3
  result loss = %0#0
  result d = %0#1
  result correct = %0#2
)")));
  EXPECT_TRUE(InPlaceLegal(result.graph));
}

TEST(FuseBiasUpdateTest, KeepsABiasGradientWithSecondUse) {
  ExpectKept(Text(std::string(kGrad) + R"(
  %1 = add(%b, %d#1) : f32[2]
  update b = %1
  result d = %d#0
  result db = %d#1
)"),
             "fuse %1: second use of %0#1 by an output");
}

TEST(FuseBiasUpdateTest, KeepsABiasThatIsReadAfterTheKernel) {
  ExpectKept(Text(std::string(kGrad) + R"(
  %1 = add_bias(%d#0, %b) : f32[4,2]
  %2 = add(%b, %d#1) : f32[2]
  update b = %2
  result z = %1
)"),
             "fuse %2: reader %1 of the old %b runs after its update");
}

TEST(FuseBiasUpdateTest, KeepsABiasWhoseOldValueIsAnOutput) {
  ExpectKept(Text(std::string(kGrad) + R"(
  %1 = add(%b, %d#1) : f32[2]
  update b = %1
  result d = %d#0
  result old = %b
)"),
             "fuse %1: the old %b is an output");
}

TEST(FuseBiasUpdateTest, KeepsABiasBoundAfterTheKernel) {
  ExpectKept(Text(std::string(kGrad) + R"(
  %c = param f32[2]
  %1 = add(%c, %d#1) : f32[2]
  update c = %1
  result d = %d#0
)"),
             "fuse %1: %c is bound after %0#1");
}

TEST(FuseBiasUpdateTest, KeepsABiasGradientOfItsOwn) {
  ExpectKept(Text(R"(
  %0 = reduce_rows(%da) : f32[2]
  %1 = add(%b, %0) : f32[2]
  update b = %1
)"),
             "fuse %1: its gradient %0 is made by reduce_rows alone");
}

TEST(FuseBiasUpdateTest, KeepsAnUpdateThatScalesByLearningRate) {
  ExpectKept(Text(std::string(kGrad) + R"(
  %lr = input f32[]
  %1 = sgd_update(%b, %d#1, %lr) : f32[2]
  update b = %1
  result d = %d#0
)"),
             "fuse %1: the gradient of %b is scaled by lr, read at run time");
}

TEST(FuseBiasUpdateTest, KeepsAnAdditionThatUpdatesNothing) {
  const std::string text = Text(std::string(kGrad) + R"(
  %1 = add(%b, %d#1) : f32[2]
  result sum = %1
)");
  const PassResult result = RunPass(FuseBiasUpdate, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, IsEmpty());
}

}  // namespace
}  // namespace onestep
