// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::HasSubstr;

constexpr absl::StatusCode kInternal = absl::StatusCode::kInternal;

TEST(GraphTest, WrongOperandsAreRefusedWithTheirShapes) {
  Graph g;
  const Value a = g.AddInput("a", F32({8, 4}));
  const Value b = g.AddInput("b", F32({5, 3}));
  EXPECT_THAT(g.AddNode(OpKind::kMatMul, {a, b}, MatMulAttrs{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("f32[8,4] x f32[5,3]")));
  EXPECT_THAT(g.AddNode(OpKind::kMatMul, {a}, MatMulAttrs{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("matmul: want 2 to 3 operands, got 1")));
  EXPECT_THAT(g.AddNode(OpKind::kActivation, {a}, ScaleAttrs{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("attributes of another op")));
  EXPECT_EQ(g.size(), 2);
}

TEST(GraphTest, AnOperandThatComesLaterIsNotVerified) {
  Graph g;
  const Value x = g.AddInput("x", F32({2}));
  const Value y = AddActivation(g, Activation::kRelu, x);
  const Value z = AddActivation(g, Activation::kTanh, y);
  EXPECT_OK(g.Verify());
  g.MoveBefore(z.node, y.node);
  EXPECT_THAT(g.Verify(), StatusIs(kInternal, HasSubstr("not defined before")));
}

TEST(GraphTest, ATypeThatIsNotTheInferredOneIsNotVerified) {
  Graph g;
  const Value y =
      AddActivation(g, Activation::kRelu, g.AddInput("x", F32({2})));
  y.node->types[0] = F32({3});
  EXPECT_THAT(g.Verify(), StatusIs(kInternal, HasSubstr("inferred")));
}

TEST(GraphTest, TwoLeavesOfOneNameAreNotVerified) {
  Graph g;
  g.AddInput("x", F32({2}));
  g.AddParam("x", F32({2}));
  EXPECT_THAT(g.Verify(), StatusIs(kInternal, HasSubstr("two leaves named x")));
}

TEST(GraphTest, AResultHasANameOfItsOwn) {
  Graph g;
  const Value x = g.AddInput("x", F32({2}));
  const Value y = AddActivation(g, Activation::kRelu, x);
  Graph leaf = g.Clone();
  leaf.AddResult("x", leaf.nodes().back()->result());
  EXPECT_THAT(leaf.Verify(), StatusIs(kInternal, HasSubstr("result x has")));
  g.AddResult("y", y);
  g.AddResult("y", y);
  EXPECT_THAT(g.Verify(), StatusIs(kInternal, HasSubstr("result y has")));
}

TEST(GraphTest, ASizeOfZeroIsNotVerified) {
  Graph g;
  g.AddInput("x", F32({3, 0}));
  EXPECT_THAT(g.Verify(), StatusIs(kInternal, HasSubstr("want sizes from 1")));
}

TEST(GraphTest, AParamIsUpdatedOnceAndByItsOwnType) {
  Graph g;
  const Value w = g.AddParam("w", F32({2}));
  g.AddUpdate(w, AddActivation(g, Activation::kRelu, w));
  EXPECT_OK(g.Verify());
  Graph twice = g.Clone();
  twice.AddUpdate(twice.FindLeaf("w")->result(),
                  twice.nodes().back()->result());
  EXPECT_THAT(twice.Verify(), StatusIs(kInternal, HasSubstr("two updates")));
  Graph other = g.Clone();
  other.SetOutput(0, other.AddInput("y", F32({3})));
  EXPECT_THAT(other.Verify(),
              StatusIs(kInternal, HasSubstr("want f32[2], got f32[3]")));
}

TEST(GraphTest, ACloneIsEqualAndApart) {
  Graph g;
  const Value x = g.AddInput("x", F32({2}));
  g.AddResult("y", AddActivation(g, Activation::kRelu, x));
  const Graph clone = g.Clone();
  const std::string text = PrintGraph(clone);
  EXPECT_EQ(text, PrintGraph(g));
  g.ReplaceUses(x, g.AddInput("z", F32({2})));
  EXPECT_EQ(PrintGraph(clone), text);
  EXPECT_OK(clone.Verify());
}

TEST(GraphTest, UsesCountOperandSlotsAndOutputs) {
  Graph g;
  const Value x = g.AddInput("x", F32({2}));
  const Value y = g.Add(OpKind::kAdd, {x, x});
  g.AddResult("z", x);
  EXPECT_EQ(g.CountUses(x), 3);
  EXPECT_EQ(g.Users(x), std::vector<Node*>{y.node});
  EXPECT_EQ(g.CountUses(y), 0);
  g.Erase(y.node);
  EXPECT_EQ(g.CountUses(x), 1);
}

TEST(GraphTest, ErasingTheInsertionPointMovesIt) {
  Graph g;
  const Value x = g.AddInput("x", F32({2}));
  const Value y = AddActivation(g, Activation::kRelu, x);
  const Value z = AddActivation(g, Activation::kTanh, x);
  g.set_insertion_point(y.node);
  g.Erase(y.node);
  const Value w = AddActivation(g, Activation::kSigmoid, x);
  EXPECT_EQ(g.IndexOf(w.node) + 1, g.IndexOf(z.node));
}

}  // namespace
}  // namespace onestep
