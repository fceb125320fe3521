// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Text(const std::string& lines) {
  return R"(graph {
  %x = input f32[4,3]
  %d = input f32[4,2]
  %w = param f32[3,2]
)" + lines +
         "}\n";
}

void ExpectKept(const std::string& text, const std::string& refusal) {
  const PassResult result = RunPass(FuseUpdate, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, ElementsAre(refusal));
}

TEST(FuseUpdateTest, AccumulatesIntoTheParam) {
  const PassResult result = RunPass(FuseUpdate, Text(R"(
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2] @backward
  %1 = add(%w, %0) : f32[3,2] @update
  update w = %1
)"));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = matmul(%x, %d, %w) {trans_a=true, accumulate=true} : f32[3,2] @update
  update w = %0
)")));
  EXPECT_THAT(result.graph.nodes().back()->fused_from,
              ElementsAre("matmul", "add"));
}

TEST(FuseUpdateTest, TakesTheParamAsEitherOperand) {
  const PassResult result = RunPass(FuseUpdate, Text(R"(
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2]
  %1 = add(%0, %w) : f32[3,2]
  update w = %1
)"));
  EXPECT_THAT(result.text, HasSubstr("matmul(%x, %d, %w)"));
}

TEST(FuseUpdateTest, MovesTheUpdateBelowTheReadersOfTheOldParam) {
  const PassResult result = RunPass(FuseUpdate, Text(R"(
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2] @backward
  %1 = add(%w, %0) : f32[3,2] @update
  %2 = matmul(%d, %w) {trans_b=true} : f32[4,3] @backward
  %3 = relu(%2) : f32[4,3] @backward
  update w = %1
  result da = %3
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = matmul(%d, %w) {trans_b=true} : f32[4,3] @backward
  %1 = matmul(%x, %d, %w) {trans_a=true, accumulate=true} : f32[3,2] @update
  %2 = relu(%0) : f32[4,3] @backward
  update w = %1
  result da = %2
)")));
  EXPECT_TRUE(InPlaceLegal(result.graph));
}

TEST(FuseUpdateTest, KeepsAnUpdateReadBeforeAReaderOfTheOldParam) {
  ExpectKept(Text(R"(
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2]
  %1 = add(%w, %0) : f32[3,2]
  %2 = relu(%1) : f32[3,2]
  %3 = mul(%w, %2) : f32[3,2]
  update w = %1
  result y = %3
)"),
             "fuse %1: reader %3 of the old %w runs after its update");
}

TEST(FuseUpdateTest, KeepsAGradientWithSecondUse) {
  ExpectKept(Text(R"(
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2]
  %1 = add(%w, %0) : f32[3,2]
  %2 = relu(%0) : f32[3,2]
  update w = %1
  result y = %2
)"),
             "fuse %1: second use of %0 by relu");
}

TEST(FuseUpdateTest, KeepsAParamWhoseOldValueIsAnOutput) {
  ExpectKept(Text(R"(
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2]
  %1 = add(%w, %0) : f32[3,2]
  update w = %1
  result old = %w
)"),
             "fuse %1: the old %w is an output");
}

TEST(FuseUpdateTest, KeepsAGradientThatReadsItsParam) {
  ExpectKept(R"(graph {
  %d = input f32[2,2]
  %w = param f32[2,2]
  %0 = matmul(%d, %w) : f32[2,2]
  %1 = add(%w, %0) : f32[2,2]
  update w = %1
})",
             "fuse %1: %0 reads %w itself");
}

TEST(FuseUpdateTest, KeepsOneOfTwoUpdatesThatReadEachOthersParam) {
  const PassResult result = RunPass(FuseUpdate, R"(graph {
  %d = input f32[2,2]
  %u = param f32[2,2]
  %w = param f32[2,2]
  %0 = matmul(%d, %w) {trans_b=true} : f32[2,2]
  %1 = matmul(%u, %d) {trans_a=true} : f32[2,2]
  %2 = add(%u, %0) : f32[2,2]
  %3 = add(%w, %1) : f32[2,2]
  update u = %2
  update w = %3
})");
  EXPECT_EQ(result.text, Canonical(R"(graph {
  %d = input f32[2,2]
  %u = param f32[2,2]
  %w = param f32[2,2]
  %0 = matmul(%u, %d) {trans_a=true} : f32[2,2]
  %1 = matmul(%d, %w, %u) {trans_b=true, accumulate=true} : f32[2,2]
  %2 = add(%w, %0) : f32[2,2]
  update u = %1
  update w = %2
})"));
  EXPECT_TRUE(InPlaceLegal(result.graph));
  EXPECT_THAT(
      result.refusals,
      ElementsAre("fuse %2: reader %0 of the old %u runs after its update"));
}

TEST(FuseUpdateTest, KeepsAGradientThatNoMatMulMakes) {
  ExpectKept(Text(R"(
  %g = input f32[3,2]
  %0 = relu(%g) : f32[3,2]
  %1 = add(%w, %0) : f32[3,2]
  update w = %1
)"),
             "fuse %1: its gradient is made by relu, not by a matmul");
}

TEST(FuseUpdateTest, KeepsAGradientWithAnEpilogue) {
  ExpectKept(Text(R"(
  %b = input f32[2]
  %0 = matmul(%x, %d, %b) {trans_a=true, bias=true} : f32[3,2]
  %1 = add(%w, %0) : f32[3,2]
  update w = %1
)"),
             "fuse %1: %0 has an epilogue");
}

TEST(FuseUpdateTest, KeepsAnUpdateWithWeightDecay) {
  ExpectKept(Text(R"(
  %lr = input f32[]
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2]
  %1 = sgd_update(%w, %0, %lr) {weight_decay=0.5} : f32[3,2]
  update w = %1
)"),
             "fuse %1: weight decay scales %w by 1 - lr * decay, read at run "
             "time");
}

TEST(FuseUpdateTest, KeepsAnUpdateThatScalesByLearningRate) {
  ExpectKept(Text(R"(
  %lr = input f32[]
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2]
  %1 = sgd_update(%w, %0, %lr) : f32[3,2]
  update w = %1
)"),
             "fuse %1: the gradient of %w is scaled by lr, read at run time");
}

TEST(FuseUpdateTest, KeepsAnAdditionThatUpdatesNothing) {
  const std::string text = Text(R"(
  %0 = matmul(%x, %d) {trans_a=true} : f32[3,2]
  %1 = add(%w, %0) : f32[3,2]
  result y = %1
)");
  const PassResult result = RunPass(FuseUpdate, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

}  // namespace
}  // namespace onestep
