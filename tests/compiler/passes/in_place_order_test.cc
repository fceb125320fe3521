// SPDX-License-Identifier: Apache-2.0
// The trap of in-place updates: the gradient of the first layer's activation
// reads the second layer's weight, and must read it before its update.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/passes/pass_test.h"
#include "tests/oracle.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kLeaves[] = R"(graph {
  %x = input f32[1,2]
  %y = input i32[1]
  %lr = input f32[]
  %w1 = param f32[2,2]
  %b1 = param f32[2]
  %w2 = param f32[2,2]
  %b2 = param f32[2]
)";

// Two layers without activation; the second weight is updated as soon as its
// gradient is there.
constexpr char kTextbook[] = R"(
  %0 = matmul(%x, %w1) : f32[1,2]
  %h = add_bias(%0, %b1) : f32[1,2]
  %2 = matmul(%h, %w2) : f32[1,2]
  %z = add_bias(%2, %b2) : f32[1,2]
  %l = nll_loss(%z, %y) : f32[]
  %p = softmax(%z) : f32[1,2]
  %d = minus_one_hot(%p, %y) : f32[1,2]
  %g = scale(%d) {alpha=1} : f32[1,2]
  %dw2 = matmul(%h, %g) {trans_a=true} : f32[2,2]
  %w2n = sgd_update(%w2, %dw2, %lr) : f32[2,2]
  %db2 = reduce_rows(%g) : f32[2]
  %b2n = sgd_update(%b2, %db2, %lr) : f32[2]
  %dh = matmul(%g, %w2) {trans_b=true} : f32[1,2]
  %dw1 = matmul(%x, %dh) {trans_a=true} : f32[2,2]
  %w1n = sgd_update(%w1, %dw1, %lr) : f32[2,2]
  %db1 = reduce_rows(%dh) : f32[2]
  %b1n = sgd_update(%b1, %db1, %lr) : f32[2]
  update w1 = %w1n
  update b1 = %b1n
  update w2 = %w2n
  update b2 = %b2n
  result loss = %l
})";

// What a fusion that forgot the order would give.
constexpr char kWrongOrder[] = R"(
  %h = matmul(%x, %w1, %b1) {bias=true} : f32[1,2]
  %z = matmul(%h, %w2, %b2) {bias=true} : f32[1,2]
  %l:3 = loss_grad(%z, %y, %lr) {scaled=true} : f32[], f32[1,2], f32[]
  %w2n = matmul(%h, %l#1, %w2) {trans_a=true, accumulate=true} : f32[2,2]
  %dh = matmul(%l#1, %w2) {trans_b=true} : f32[1,2]
  %w1n = matmul(%x, %dh, %w1) {trans_a=true, accumulate=true} : f32[2,2]
  update w1 = %w1n
  update w2 = %w2n
})";

TensorMap Bindings() {
  return {{"x", {1, 2}},           {"y", {0}},     {"lr", {1}},
          {"w1", {1, -1, 0.5, 1}}, {"b1", {0, 0}}, {"w2", {1, 0, 0, 1}},
          {"b2", {0, 0}}};
}

auto Near(double x) { return DoubleNear(x, 5e-8); }

TEST(InPlaceOrderTest, FusedUpdatesReadTheOldWeights) {
  ASSERT_OK_AND_ASSIGN(Graph graph,
                       ParseGraph(std::string(kLeaves) + kTextbook));
  ASSERT_OK(RunPipeline(graph, {}));
  EXPECT_THAT(PrintGraph(graph),
              HasSubstr("%w2) {trans_a=true, accumulate=true}"));
  EXPECT_TRUE(InPlaceLegal(graph));
  ASSERT_OK_AND_ASSIGN(TensorMap values,
                       Evaluate(AsRunInPlace(graph), Bindings()));
  EXPECT_THAT(values["loss"], ElementsAre(Near(0.31326169)));
  EXPECT_THAT(values["w1"], ElementsAre(Near(1.2689414), Near(-1.2689414),
                                        Near(1.0378828), Near(0.4621172)));
  EXPECT_THAT(values["w2"], ElementsAre(Near(1.5378828), Near(-0.5378828),
                                        Near(0.2689414), Near(0.7310586)));
}

TEST(InPlaceOrderTest, EveryChainReadsTheOldWeights) {
  const auto near = [](double x) { return DoubleNear(x, 5e-7); };  // fp32
  for (bool fuse : {false, true}) {
    for (KernelChoice choice :
         {KernelChoice::kOnednn, KernelChoice::kLoops, KernelChoice::kBySize}) {
      ASSERT_OK_AND_ASSIGN(Graph graph,
                           ParseGraph(std::string(kLeaves) + kTextbook));
      ASSERT_OK(RunPipeline(graph, {.fuse = fuse}));
      ASSERT_OK_AND_ASSIGN(TensorMap values,
                           RunChain(graph, Bindings(), choice, 1));
      EXPECT_THAT(values["loss"], ElementsAre(near(0.31326169)));
      EXPECT_THAT(values["w1"], ElementsAre(near(1.2689414), near(-1.2689414),
                                            near(1.0378828), near(0.4621172)));
      EXPECT_THAT(values["w2"], ElementsAre(near(1.5378828), near(-0.5378828),
                                            near(0.2689414), near(0.7310586)));
    }
  }
}

TEST(InPlaceOrderTest, TheWrongOrderIsSeenByTheHelpersOfTheseTests) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph(std::string(kLeaves) + kWrongOrder));
  EXPECT_FALSE(InPlaceLegal(graph));
  ASSERT_OK_AND_ASSIGN(TensorMap values,
                       Evaluate(AsRunInPlace(graph), Bindings()));
  EXPECT_NEAR(values["w1"][0], 1.5582594, 5e-8);
  ASSERT_OK_AND_ASSIGN(values, Evaluate(graph, Bindings()));
  EXPECT_NEAR(values["w1"][0], 1.2689414, 5e-8);
}

}  // namespace
}  // namespace onestep
