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
  %x = input f32[4,3]
  %w = param f32[3,2]
  %b = param f32[2]
)" + lines +
         "}\n";
}

class FuseBiasActivationTest : public testing::TestWithParam<std::string> {};

TEST_P(FuseBiasActivationTest, TakesBiasAndActivationIntoTheMatMul) {
  const std::string act = GetParam();
  const PassResult result = RunPass(FuseBiasActivation, Text(R"(
  %0 = matmul(%x, %w) : f32[4,2] @forward
  %1 = add_bias(%0, %b) : f32[4,2] @forward
  %2 = )" + act + R"((%1) : f32[4,2] @forward
  result y = %2
)"));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text,
            Canonical(Text("%0 = matmul(%x, %w, %b) {bias=true, activation=" +
                           act + "} : f32[4,2] @forward\nresult y = %0\n")));
  EXPECT_THAT(result.graph.nodes().back()->fused_from,
              ElementsAre("matmul", "add_bias", act));
}

INSTANTIATE_TEST_SUITE_P(Activations, FuseBiasActivationTest,
                         testing::Values("relu", "tanh", "sigmoid", "gelu"),
                         [](const auto& info) { return info.param; });

TEST(FuseBiasActivationTest, KeepsTheTransposesOfTheMatMul) {
  const PassResult result = RunPass(FuseBiasActivation, R"(graph {
  %x = input f32[3,4]
  %w = param f32[2,3]
  %b = param f32[2]
  %0 = matmul(%x, %w) {trans_a=true, trans_b=true} : f32[4,2]
  %1 = add_bias(%0, %b) : f32[4,2]
  result y = %1
})");
  EXPECT_EQ(result.text, Canonical(R"(graph {
  %x = input f32[3,4]
  %w = param f32[2,3]
  %b = param f32[2]
  %0 = matmul(%x, %w, %b) {trans_a=true, trans_b=true, bias=true} : f32[4,2]
  result y = %0
})"));
}

TEST(FuseBiasActivationTest, KeepsGeluWhoseGradientReadsItsOperand) {
  const PassResult result = RunPass(FuseBiasActivation, Text(R"(
  %dy = input f32[4,2]
  %0 = matmul(%x, %w) : f32[4,2]
  %1 = add_bias(%0, %b) : f32[4,2]
  %2 = gelu(%1) : f32[4,2]
  %3 = gelu_grad(%1, %dy) : f32[4,2]
  result y = %2
  result dx = %3
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %dy = input f32[4,2]
  %0 = matmul(%x, %w, %b) {bias=true} : f32[4,2]
  %1 = gelu(%0) : f32[4,2]
  %2 = gelu_grad(%0, %dy) : f32[4,2]
  result y = %1
  result dx = %2
)")));
  EXPECT_THAT(result.refusals,
              ElementsAre("fuse %0 into gelu: second use of %0 by gelu_grad"));
}

TEST(FuseBiasActivationTest, KeepsMatMulWithSecondUse) {
  const std::string text = Text(R"(
  %0 = matmul(%x, %w) : f32[4,2]
  %1 = add_bias(%0, %b) : f32[4,2]
  %2 = tanh(%0) : f32[4,2]
  result y = %1
  result z = %2
)");
  const PassResult result = RunPass(FuseBiasActivation, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals,
              ElementsAre("fuse %0 into add_bias: second use of %0 by tanh"));
}

TEST(FuseBiasActivationTest, KeepsAnOperandOfTheActivationThatIsAnOutput) {
  const PassResult result = RunPass(FuseBiasActivation, Text(R"(
  %0 = matmul(%x, %w) : f32[4,2]
  %1 = add_bias(%0, %b) : f32[4,2]
  %2 = relu(%1) : f32[4,2]
  result y = %2
  result z = %1
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = matmul(%x, %w, %b) {bias=true} : f32[4,2]
  %1 = relu(%0) : f32[4,2]
  result y = %1
  result z = %0
)")));
  EXPECT_THAT(result.refusals,
              ElementsAre("fuse %0 into relu: second use of %0 by an output"));
}

TEST(FuseBiasActivationTest, KeepsAMatMulThatHasAnotherEpilogue) {
  const std::string text = Text(R"(
  %c = input f32[4,2]
  %0 = matmul(%x, %w, %c) {accumulate=true} : f32[4,2]
  %1 = add_bias(%0, %b) : f32[4,2]
  result y = %1
)");
  const PassResult result = RunPass(FuseBiasActivation, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

TEST(FuseBiasActivationTest, KeepsABiasOfWhatIsNoMatMul) {
  const std::string text = Text(R"(
  %z = input f32[4,2]
  %0 = add_bias(%z, %b) : f32[4,2]
  %1 = relu(%0) : f32[4,2]
  result y = %1
)");
  const PassResult result = RunPass(FuseBiasActivation, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, IsEmpty());
}

}  // namespace
}  // namespace onestep
