// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

// %x f32[2,3] and the line(s) that make %y from it.
std::string Text(const std::string& lines, const std::string& result) {
  return "graph {\n  %x = input f32[2,3]\n  %s = input f32[]\n" + lines +
         "  result y = " + result + "\n}\n";
}

struct Identity {
  const char* name;
  const char* lines;
};

class SimplifyTest : public testing::TestWithParam<Identity> {};

TEST_P(SimplifyTest, ReadsTheOperandOfAnIdentity) {
  const std::string lines = GetParam().lines;
  const PassResult result = RunPass(Simplify, Text(lines, "%y"));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(Text(lines, "%x")));
}

INSTANTIATE_TEST_SUITE_P(
    Identities, SimplifyTest,
    testing::Values(Identity{"ScaleByOne", "%y = scale(%x) : f32[2,3]\n"},
                    Identity{"MulScalarByOne",
                             "%c = constant() {value=1} : f32[]\n"
                             "%y = mul_scalar(%x, %c) : f32[2,3]\n"},
                    Identity{"AddOfZero",
                             "%c = constant() : f32[2,3]\n"
                             "%y = add(%x, %c) : f32[2,3]\n"},
                    Identity{"ZeroAndAddend",
                             "%c = constant() : f32[2,3]\n"
                             "%y = add(%c, %x) : f32[2,3]\n"},
                    Identity{"MulByOne",
                             "%c = constant() {value=1} : f32[2,3]\n"
                             "%y = mul(%x, %c) : f32[2,3]\n"},
                    Identity{"OneAndFactor",
                             "%c = constant() {value=1} : f32[2,3]\n"
                             "%y = mul(%c, %x) : f32[2,3]\n"},
                    Identity{"CastToItsOwnType", "%y = cast(%x) : f32[2,3]\n"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SimplifyTest, MakesOneScaleOfTwo) {
  const std::string inner = "%0 = scale(%x) {alpha=0.5} : f32[2,3] @loss\n";
  const PassResult result = RunPass(
      Simplify,
      Text(inner + "%1 = scale(%0) {alpha=3} : f32[2,3] @backward\n", "%1"));
  EXPECT_EQ(
      result.text,
      Canonical(Text(inner + "%1 = scale(%x) {alpha=1.5} : f32[2,3] @backward\n"
                             "%2 = scale(%0) {alpha=3} : f32[2,3] @backward\n",
                     "%1")));
}

TEST(SimplifyTest, MakesAScaleOfMulScalarByOne) {
  const std::string one = "%c = constant() {value=1} : f32[]\n";
  const PassResult result = RunPass(
      Simplify,
      Text(one + "%y = mul_scalar(%x, %c) {alpha=-1} : f32[2,3]\n", "%y"));
  EXPECT_EQ(
      result.text,
      Canonical(Text(one + "%0 = scale(%x) {alpha=-1} : f32[2,3]\n"
                           "%1 = mul_scalar(%x, %c) {alpha=-1} : f32[2,3]\n",
                     "%0")));
}

class SimplifyKeepsTest : public testing::TestWithParam<Identity> {};

TEST_P(SimplifyKeepsTest, KeepsWhatIsNoIdentity) {
  const std::string text = Text(GetParam().lines, "%y");
  const PassResult result = RunPass(Simplify, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
}

INSTANTIATE_TEST_SUITE_P(
    Others, SimplifyKeepsTest,
    testing::Values(Identity{"Scale", "%y = scale(%x) {alpha=2} : f32[2,3]\n"},
                    Identity{"TwoScalesWhoseProductOverflows",
                             "%0 = scale(%x) {alpha=1e+30} : f32[2,3]\n"
                             "%y = scale(%0) {alpha=1e+30} : f32[2,3]\n"},
                    Identity{"MulScalarByAnInput",
                             "%y = mul_scalar(%x, %s) : f32[2,3]\n"},
                    Identity{"AddOfOne",
                             "%c = constant() {value=1} : f32[2,3]\n"
                             "%y = add(%x, %c) : f32[2,3]\n"},
                    Identity{"MulByZero",
                             "%c = constant() : f32[2,3]\n"
                             "%y = mul(%x, %c) : f32[2,3]\n"},
                    Identity{"CastThenScale",
                             "%u = input u8[2,3]\n"
                             "%c = cast(%u) : f32[2,3]\n"
                             "%y = scale(%c) {alpha=0.5} : f32[2,3]\n"},
                    Identity{"ReduceOfOneRow",
                             "%r = input f32[1,3]\n"
                             "%y = reduce_rows(%r) : f32[3]\n"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onestep
