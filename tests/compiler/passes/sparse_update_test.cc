// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Text(const std::string& lines) {
  return R"(graph {
  %i = input i32[4]
  %x = input f32[4,2]
  %lr = input f32[]
  %w = param f32[9,2]
)" + lines +
         "}\n";
}

void ExpectKept(const std::string& text, const std::string& refusal) {
  const PassResult result = RunPass(SparseUpdate, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, ElementsAre(refusal));
}

TEST(SparseUpdateTest, ScattersIntoTheParam) {
  const PassResult result = RunPass(SparseUpdate, Text(R"(
  %0 = gather_rows(%w, %i) : f32[4,2] @forward
  %1 = constant() : f32[9,2] @backward
  %2 = scatter_add(%1, %i, %0) : f32[9,2] @backward
  %3 = add(%w, %2) : f32[9,2] @update
  update w = %3
)"));
  EXPECT_TRUE(result.changed);
  EXPECT_THAT(result.refusals, IsEmpty());
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = gather_rows(%w, %i) : f32[4,2] @forward
  %1 = scatter_add(%w, %i, %0) : f32[9,2] @update
  update w = %1
)")));
  EXPECT_THAT(result.graph.nodes().back()->fused_from,
              ElementsAre("scatter_add", "add"));
}

TEST(SparseUpdateTest, TakesTheParamAsEitherOperandAndLeavesASharedZero) {
  const PassResult result = RunPass(SparseUpdate, Text(R"(
  %0 = constant() : f32[9,2]
  %1 = scatter_add(%0, %i, %x) : f32[9,2]
  %2 = add(%1, %w) : f32[9,2]
  update w = %2
  result zero = %0
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = constant() : f32[9,2]
  %1 = scatter_add(%w, %i, %x) : f32[9,2]
  update w = %1
  result zero = %0
)")));
}

TEST(SparseUpdateTest, KeepsAScatterIntoWhatIsNotZero) {
  ExpectKept(Text(R"(
  %0 = constant() {value=1} : f32[9,2]
  %1 = scatter_add(%0, %i, %x) : f32[9,2]
  %2 = add(%w, %1) : f32[9,2]
  update w = %2
)"),
             "scatter into %2: %1 adds to what is not 0");
}

TEST(SparseUpdateTest, KeepsAGradientWithSecondUse) {
  ExpectKept(Text(R"(
  %0 = constant() : f32[9,2]
  %1 = scatter_add(%0, %i, %x) : f32[9,2]
  %2 = add(%w, %1) : f32[9,2]
  %3 = relu(%1) : f32[9,2]
  update w = %2
  result y = %3
)"),
             "scatter into %2: second use of %1 by relu");
}

TEST(SparseUpdateTest, KeepsAGradientThatIsTheParam) {
  ExpectKept(R"(graph {
  %i = input i32[9]
  %w = param f32[9,2]
  %0 = constant() : f32[9,2]
  %1 = scatter_add(%0, %i, %w) : f32[9,2]
  %2 = add(%w, %1) : f32[9,2]
  update w = %2
})",
             "scatter into %2: %1 reads %w itself");
}

TEST(SparseUpdateTest, KeepsAParamWhoseOldValueIsAnOutput) {
  ExpectKept(Text(R"(
  %0 = constant() : f32[9,2]
  %1 = scatter_add(%0, %i, %x) : f32[9,2]
  %2 = add(%w, %1) : f32[9,2]
  update w = %2
  result old = %w
)"),
             "scatter into %2: the old %w is an output");
}

TEST(SparseUpdateTest, KeepsAnUpdateBeforeAReaderOfTheOldParam) {
  ExpectKept(Text(R"(
  %0 = constant() : f32[9,2]
  %1 = scatter_add(%0, %i, %x) : f32[9,2]
  %2 = add(%w, %1) : f32[9,2]
  %3 = relu(%w) : f32[9,2]
  update w = %2
  result y = %3
)"),
             "scatter into %2: reader %3 of the old %w runs after its update");
}

TEST(SparseUpdateTest, KeepsAnSgdUpdateWithTheReason) {
  ExpectKept(Text(R"(
  %0 = constant() : f32[9,2]
  %1 = scatter_add(%0, %i, %x) : f32[9,2]
  %2 = sgd_update(%w, %1, %lr) {weight_decay=0.5} : f32[9,2]
  update w = %2
)"),
             "scatter into %2: weight decay scales %w by 1 - lr * decay, read "
             "at run time");
}

TEST(SparseUpdateTest, LeavesOtherAdditionsAlone) {
  const std::string text = Text(R"(
  %0 = add(%w, %w) : f32[9,2]
  update w = %0
)");
  const PassResult result = RunPass(SparseUpdate, text);
  EXPECT_FALSE(result.changed);
  EXPECT_THAT(result.refusals, IsEmpty());
}

}  // namespace
}  // namespace onestep
