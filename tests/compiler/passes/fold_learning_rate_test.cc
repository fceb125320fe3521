// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A layer's gradients from that of the loss, %g, on; `tail` has the updates.
std::string Text(const std::string& tail) {
  return R"(graph {
  %x = input f32[4,3]
  %y = input i32[4]
  %lr = input f32[]
  %w = param f32[3,2]
  %b = param f32[2]
  %p = input f32[4,2]
  %d = minus_one_hot(%p, %y) : f32[4,2] @backward
  %g = scale(%d) {alpha=0.25} : f32[4,2] @backward
)" + tail +
         "}\n";
}

constexpr char kSgdUpdates[] = R"(
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2] @backward
  %db = reduce_rows(%g) : f32[2] @backward
  %w1 = sgd_update(%w, %dw, %lr) : f32[3,2] @update
  %b1 = sgd_update(%b, %db, %lr) : f32[2] @update
  update w = %w1
  update b = %b1
)";

void ExpectKept(const std::string& text, const std::string& refusal) {
  const PassResult result = RunPass(FoldLearningRate, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, Contains(HasSubstr(refusal)));
}

TEST(FoldLearningRateTest, ScalesTheLossGradientOnce) {
  const PassResult result = RunPass(FoldLearningRate, Text(kSgdUpdates));
  EXPECT_TRUE(result.changed);
  EXPECT_THAT(result.refusals, IsEmpty());
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %s = mul_scalar(%g, %lr) {alpha=-1} : f32[4,2] @backward
  %dw = matmul(%x, %s) {trans_a=true} : f32[3,2] @backward
  %db = reduce_rows(%s) : f32[2] @backward
  %w1 = add(%w, %dw) : f32[3,2] @update
  %b1 = add(%b, %db) : f32[2] @update
  update w = %w1
  update b = %b1
)")));
}

TEST(FoldLearningRateTest, FollowsTheGradientThroughLinearOps) {
  const std::string head = R"(
  %v = param f32[3,2]
  %u = input f32[4,3]
)";
  const std::string through = R"( {trans_b=true} : f32[4,3]
  %1 = tanh_grad(%u, %0) : f32[4,3]
  %2 = add(%1, %1) : f32[4,3]
  %3 = mul(%2, %u) : f32[4,3]
  %4 = softmax_grad(%u, %3) : f32[4,3]
  %5 = reduce_rows(%4) : f32[3]
  %6 = broadcast_rows(%5) {rows=4} : f32[4,3]
  %7 = matmul(%6, %p) {trans_a=true} : f32[3,2]
)";
  const PassResult result =
      RunPass(FoldLearningRate, Text(head + "%0 = matmul(%g, %w)" + through +
                                     "%8 = sgd_update(%v, %7, %lr) : f32[3,2]\n"
                                     "update v = %8\n"));
  EXPECT_EQ(result.text,
            Canonical(Text(
                head +
                "%s = mul_scalar(%g, %lr) {alpha=-1} : f32[4,2] @backward\n"
                "%0 = matmul(%s, %w)" +
                through + "%8 = add(%v, %7) : f32[3,2]\nupdate v = %8\n")));
}

TEST(FoldLearningRateTest, FollowsTheGradientThroughGathersAndScatters) {
  const std::string head = R"(
  %v = param f32[3,2]
  %i = input i32[4]
  %u = input f32[4,3]
  %0 = constant() : f32[3,2]
)";
  const std::string through = R"( {blocks=2, trans_a=true} : f32[6,2]
  %2 = gather_rows(%1, %i) : f32[4,2]
  %3 = scatter_add(%0, %i, %2) : f32[3,2]
)";
  const PassResult result = RunPass(
      FoldLearningRate, Text(head + "%1 = block_matmul(%u, %g)" + through + R"(
  %4 = sgd_update(%v, %3, %lr) : f32[3,2]
  update v = %4
)"));
  EXPECT_EQ(result.text, Canonical(Text(head + R"(
  %s = mul_scalar(%g, %lr) {alpha=-1} : f32[4,2] @backward
  %1 = block_matmul(%u, %s))" + through +
                                        R"(
  %4 = add(%v, %3) : f32[3,2]
  update v = %4
)")));
}

TEST(FoldLearningRateTest, KeepsAScatterIntoWhatIsNotZero) {
  ExpectKept(Text(R"(
  %v = param f32[3,2]
  %i = input i32[4]
  %0 = constant() {value=1} : f32[3,2]
  %1 = scatter_add(%0, %i, %g) : f32[3,2]
  %2 = sgd_update(%v, %1, %lr) : f32[3,2]
  update v = %2
)"),
             "fold %4: %3 is itself the gradient of %v");
}

TEST(FoldLearningRateTest, AddsTheZeroGradientOfAnUnusedParam) {
  const PassResult result =
      RunPass(FoldLearningRate, Text(std::string(kSgdUpdates) + R"(
  %v = param f32[5]
  %0 = constant() : f32[5]
  %1 = sgd_update(%v, %0, %lr) : f32[5]
  update v = %1
)"));
  EXPECT_TRUE(result.changed);
  EXPECT_THAT(result.text, HasSubstr("= add(%v, "));
}

TEST(FoldLearningRateTest, KeepsAGraphWithoutUpdates) {
  const PassResult result = RunPass(FoldLearningRate, Text("result g = %g\n"));
  EXPECT_FALSE(result.changed);
  EXPECT_THAT(result.refusals, IsEmpty());
}

TEST(FoldLearningRateTest, KeepsAllUpdatesWhenOneHasWeightDecay) {
  const std::string text = Text(R"(
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2]
  %db = reduce_rows(%g) : f32[2]
  %w1 = sgd_update(%w, %dw, %lr) {weight_decay=0.5} : f32[3,2]
  %b1 = sgd_update(%b, %db, %lr) : f32[2]
  update w = %w1
  update b = %b1
)");
  EXPECT_THAT(
      RunPass(FoldLearningRate, text).refusals,
      ElementsAre("fold %4: weight decay scales %w by 1 - lr * decay, read at "
                  "run time"));
  ExpectKept(text, "weight decay");
}

TEST(FoldLearningRateTest, KeepsUpdatesThatHaveAState) {
  ExpectKept(Text(R"(
  %v = param f32[3,2]
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2]
  %w1:2 = momentum_update(%w, %dw, %v, %lr) : f32[3,2], f32[3,2]
  update w = %w1#0
  update v = %w1#1
)"),
             "fold %3#0: momentum_update of %w keeps a state");
}

TEST(FoldLearningRateTest, KeepsUpdatesOfTwoLearningRates) {
  ExpectKept(Text(R"(
  %lr2 = input f32[]
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2]
  %db = reduce_rows(%g) : f32[2]
  %w1 = sgd_update(%w, %dw, %lr) : f32[3,2]
  %b1 = sgd_update(%b, %db, %lr2) : f32[2]
  update w = %w1
  update b = %b1
)"),
             "fold %5: its lr is %lr2, not %lr");
}

TEST(FoldLearningRateTest, KeepsAGradientThatIsAResult) {
  ExpectKept(Text(std::string(kSgdUpdates) + "  result norm = %db\n"),
             "no value carries all gradients");
}

TEST(FoldLearningRateTest, KeepsAGradientReadOutsideTheUpdates) {
  ExpectKept(Text(std::string(kSgdUpdates) +
                  "%0 = relu(%g) : f32[4,2]\n  result r = %0\n"),
             "no value carries all gradients");
}

TEST(FoldLearningRateTest, KeepsAGradientThatIsNotLinear) {
  ExpectKept(Text(R"(
  %q = mul(%g, %g) : f32[4,2]
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2]
  %db = reduce_rows(%q) : f32[2]
  %w1 = sgd_update(%w, %dw, %lr) : f32[3,2]
  %b1 = sgd_update(%b, %db, %lr) : f32[2]
  update w = %w1
  update b = %b1
)"),
             "no value carries all gradients");
}

TEST(FoldLearningRateTest, KeepsAGradientWithATermOfItsOwn) {
  ExpectKept(Text(R"(
  %own = add(%g, %p) : f32[4,2]
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2]
  %db = reduce_rows(%own) : f32[2]
  %w1 = sgd_update(%w, %dw, %lr) : f32[3,2]
  %b1 = sgd_update(%b, %db, %lr) : f32[2]
  update w = %w1
  update b = %b1
)"),
             "no value carries all gradients");
}

TEST(FoldLearningRateTest, KeepsUpdatesThatNoGradientReaches) {
  ExpectKept(Text(R"(
  %dw = constant() : f32[3,2]
  %w1 = sgd_update(%w, %dw, %lr) : f32[3,2]
  update w = %w1
)"),
             "no value carries all gradients");
}

TEST(FoldLearningRateTest, KeepsGradientsOfTwoLosses) {
  ExpectKept(Text(R"(
  %h = relu(%p) : f32[4,2]
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2]
  %db = reduce_rows(%h) : f32[2]
  %w1 = sgd_update(%w, %dw, %lr) : f32[3,2]
  %b1 = sgd_update(%b, %db, %lr) : f32[2]
  update w = %w1
  update b = %b1
)"),
             "no value carries all gradients");
}

TEST(FoldLearningRateTest, KeepsAGradientThatAnUpdateReadsAsItIs) {
  ExpectKept(R"(graph {
  %x = input f32[4,3]
  %g = input f32[4,2]
  %lr = input f32[]
  %w = param f32[3,2]
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2]
  %w1 = sgd_update(%w, %dw, %lr) : f32[3,2]
  update w = %w1
})",
             "fold %1: %0 is itself the gradient of %w");
}

TEST(FoldLearningRateTest, KeepsALearningRateMadeAfterTheGradientIsRead) {
  ExpectKept(Text(R"(
  %dw = matmul(%x, %g) {trans_a=true} : f32[3,2]
  %db = reduce_rows(%g) : f32[2]
  %late = scale(%lr) {alpha=0.5} : f32[]
  %w1 = sgd_update(%w, %dw, %late) : f32[3,2]
  %b1 = sgd_update(%b, %db, %late) : f32[2]
  update w = %w1
  update b = %b1
)"),
             "fold %5: lr is made after %1 is read");
}

}  // namespace
}  // namespace onestep
