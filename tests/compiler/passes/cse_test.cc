// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

TEST(CseTest, MakesOneNodeOfTwoEqualOnes) {
  const PassResult result = RunPass(Cse, R"(graph {
  %x = input f32[2,3]
  %0 = relu(%x) : f32[2,3] @forward
  %1 = relu(%x) : f32[2,3] @backward
  %2 = mul(%0, %1) : f32[2,3]
  result y = %2
  result z = %1
})");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(R"(graph {
  %x = input f32[2,3]
  %0 = relu(%x) : f32[2,3] @forward
  %1 = mul(%0, %0) : f32[2,3]
  result y = %1
  result z = %0
})"));
}

TEST(CseTest, FollowsEqualOperands) {
  const PassResult result = RunPass(Cse, R"(graph {
  %x = input f32[2,3]
  %0 = relu(%x) : f32[2,3]
  %1 = relu(%x) : f32[2,3]
  %2 = tanh(%0) : f32[2,3]
  %3 = tanh(%1) : f32[2,3]
  result y = %2
  result z = %3
})");
  EXPECT_EQ(result.text, Canonical(R"(graph {
  %x = input f32[2,3]
  %0 = relu(%x) : f32[2,3]
  %1 = tanh(%0) : f32[2,3]
  result y = %1
  result z = %1
})"));
}

TEST(CseTest, ReplacesEveryResult) {
  const PassResult result = RunPass(Cse, R"(graph {
  %w = param f32[3]
  %g = input f32[3]
  %v = param f32[3]
  %lr = input f32[]
  %0:2 = momentum_update(%w, %g, %v, %lr) : f32[3], f32[3]
  %1:2 = momentum_update(%w, %g, %v, %lr) : f32[3], f32[3]
  update w = %0#0
  update v = %1#1
})");
  EXPECT_EQ(result.text, Canonical(R"(graph {
  %w = param f32[3]
  %g = input f32[3]
  %v = param f32[3]
  %lr = input f32[]
  %0:2 = momentum_update(%w, %g, %v, %lr) : f32[3], f32[3]
  update w = %0#0
  update v = %0#1
})"));
}

TEST(CseTest, KeepsNodesThatDifferInAttributesTypesOrOperands) {
  const std::string text = R"(graph {
  %x = input f32[2,3]
  %y = input f32[2,3]
  %0 = scale(%x) {alpha=2} : f32[2,3]
  %1 = scale(%x) {alpha=3} : f32[2,3]
  %2 = scale(%y) {alpha=2} : f32[2,3]
  %3 = constant() : f32[2]
  %4 = constant() : f32[3]
  %5 = relu(%x) : f32[2,3]
  %6 = tanh(%x) : f32[2,3]
  result a = %0
  result b = %1
  result c = %2
  result d = %3
  result e = %4
  result f = %5
  result g = %6
})";
  const PassResult result = RunPass(Cse, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

}  // namespace
}  // namespace onestep
