// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

TEST(DceTest, ErasesChainsOfUnusedNodes) {
  const PassResult result = RunPass(Dce, R"(graph {
  %x = input f32[2,3]
  %0 = relu(%x) : f32[2,3]
  %1 = tanh(%x) : f32[2,3]
  %2 = scale(%1) {alpha=2} : f32[2,3]
  result y = %0
})");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(R"(graph {
  %x = input f32[2,3]
  %0 = relu(%x) : f32[2,3]
  result y = %0
})"));
}

TEST(DceTest, KeepsUnusedLeavesAndNodesWithOneUsedResult) {
  const std::string text = R"(graph {
  %unused = input f32[2,3]
  %w = param f32[3]
  %g = input f32[3]
  %v = param f32[3]
  %lr = input f32[]
  %0:2 = momentum_update(%w, %g, %v, %lr) : f32[3], f32[3]
  update v = %0#1
})";
  const PassResult result = RunPass(Dce, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

}  // namespace
}  // namespace onestep
