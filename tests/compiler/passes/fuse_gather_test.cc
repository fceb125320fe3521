// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

using testing::ElementsAre;

std::string Text(const std::string& lines) {
  return R"(graph {
  %images = input u8[9,3]
  %labels = input i32[9]
  %indices = input i32[4]
  %z = input f32[4,3]
)" + lines +
         "}\n";
}

TEST(FuseGatherTest, ConvertsRowsAsTheyAreGathered) {
  const PassResult result = RunPass(FuseGather, Text(R"(
  %0 = gather_rows(%images, %indices) : u8[4,3] @forward
  %1 = cast(%0) : f32[4,3] @forward
  %2 = scale(%1) {alpha=0.5} : f32[4,3] @forward
  result x = %2
)"));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = gather_convert(%images, %indices) {alpha=0.5} : f32[4,3] @forward
  result x = %0
)")));
  EXPECT_THAT(result.graph.nodes().back()->fused_from,
              ElementsAre("gather_rows", "cast", "scale"));
}

TEST(FuseGatherTest, NeedsNoScale) {
  const PassResult result = RunPass(FuseGather, Text(R"(
  %0 = gather_rows(%images, %indices) : u8[4,3]
  %1 = cast(%0) : f32[4,3]
  result x = %1
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  result x = %0
)")));
}

TEST(FuseGatherTest, GathersTheLabelsInTheLoss) {
  const PassResult result = RunPass(FuseGather, Text(R"(
  %lr = input f32[]
  %0 = gather_rows(%labels, %indices) : i32[4] @forward
  %1:3 = loss_grad(%z, %0, %lr) {scaled=true} : f32[], f32[4,3], f32[] @loss
  result loss = %1#0
  result d = %1#1
  result correct = %1#2
)"));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %lr = input f32[]
  %0:3 = loss_grad(%z, %labels, %indices, %lr) {gather=true, scaled=true} : f32[], f32[4,3], f32[] @loss
  result loss = %0#0
  result d = %0#1
  result correct = %0#2
)")));
}

TEST(FuseGatherTest, KeepsRowsWithSecondUse) {
  const std::string text = Text(R"(
  %0 = gather_rows(%images, %indices) : u8[4,3]
  %1 = cast(%0) : f32[4,3]
  result x = %1
  result raw = %0
)");
  const PassResult result = RunPass(FuseGather, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals,
              ElementsAre("fuse %0 into cast: second use of %0 by an output"));
}

TEST(FuseGatherTest, KeepsTheScaleOfRowsWithSecondUse) {
  const PassResult result = RunPass(FuseGather, Text(R"(
  %0 = gather_rows(%images, %indices) : u8[4,3]
  %1 = cast(%0) : f32[4,3]
  %2 = scale(%1) {alpha=0.5} : f32[4,3]
  %3 = relu(%1) : f32[4,3]
  result x = %2
  result y = %3
)"));
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = scale(%0) {alpha=0.5} : f32[4,3]
  %2 = relu(%0) : f32[4,3]
  result x = %1
  result y = %2
)")));
  EXPECT_THAT(result.refusals,
              ElementsAre("fuse %0 into scale: second use of %0 by relu"));
}

TEST(FuseGatherTest, KeepsLabelsWithSecondUse) {
  const std::string text = Text(R"(
  %0 = gather_rows(%labels, %indices) : i32[4]
  %1:3 = loss_grad(%z, %0) : f32[], f32[4,3], f32[]
  %2 = one_hot(%0) {classes=3} : f32[4,3]
  result loss = %1#0
  result t = %2
)");
  const PassResult result = RunPass(FuseGather, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(
      result.refusals,
      ElementsAre("fuse %0 into loss_grad: second use of %0 by one_hot"));
}

TEST(FuseGatherTest, KeepsRowsThatAreNoBytes) {
  const std::string text = Text(R"(
  %ids = input i32[9,3]
  %0 = gather_rows(%ids, %indices) : i32[4,3]
  %1 = cast(%0) : f32[4,3]
  %2 = gather_rows(%z, %indices) : f32[4,3]
  %3 = scale(%2) {alpha=0.5} : f32[4,3]
  result x = %1
  result y = %3
)");
  const PassResult result = RunPass(FuseGather, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

TEST(FuseGatherTest, KeepsASecondScale) {
  const std::string text = Text(R"(
  %0 = gather_convert(%images, %indices) {alpha=0.5} : f32[4,3]
  %1 = scale(%0) {alpha=3} : f32[4,3]
  result x = %1
)");
  const PassResult result = RunPass(FuseGather, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

}  // namespace
}  // namespace onestep
