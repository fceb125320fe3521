// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "compiler/passes/passes.h"
#include "tests/compiler/passes/pass_test.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kLeaves[] = R"(graph {
  %in = param f32[9,3]
  %out = param f32[8,3]
  %c = input i32[4]
  %mask = input f32[4]
  %mean = input f32[1,4]
  %spread = input f32[1,4]
  %n = input i32[5]
  %w = input f32[1,5]
  %y = input f32[1,5]
  %lr = input f32[]
)";

constexpr char kSkipGram[] = R"(
  %x = gather_rows(%in, %c) : f32[4,3] @forward
  %o = gather_rows(%out, %n) : f32[5,3] @forward
  %z = block_matmul(%x, %o) {trans_b=true} : f32[4,5] @forward
  %loss = sigmoid_bce(%z, %mask, %w) {positives=1} : f32[] @loss
  %d = sigmoid_bce_grad(%z, %mask, %w) {positives=1} : f32[4,5] @backward
  %s = mul_scalar(%d, %lr) {alpha=-1} : f32[4,5] @backward
  %dx = block_matmul(%s, %o) : f32[4,3] @backward
  %do = block_matmul(%s, %x) {trans_a=true} : f32[5,3] @backward
  %in1 = scatter_add(%in, %c, %dx) : f32[9,3] @update
  %out1 = scatter_add(%out, %n, %do) : f32[8,3] @update
)";

constexpr char kCbow[] = R"(
  %one = constant() {value=1} : f32[1]
  %x = gather_rows(%in, %c) : f32[4,3] @forward
  %h = block_matmul(%mean, %x) : f32[1,3] @forward
  %o = gather_rows(%out, %n) : f32[5,3] @forward
  %z = block_matmul(%h, %o) {trans_b=true} : f32[1,5] @forward
  %loss = sigmoid_bce(%z, %one, %w) {positives=1} : f32[] @loss
  %d = sigmoid_bce_grad(%z, %one, %w) {positives=1} : f32[1,5] @backward
  %s = mul_scalar(%d, %lr) {alpha=-1} : f32[1,5] @backward
  %dh = block_matmul(%s, %o) : f32[1,3] @backward
  %do = block_matmul(%s, %h) {trans_a=true} : f32[5,3] @backward
  %dx = block_matmul(%spread, %dh) {trans_a=true} : f32[4,3] @backward
  %in1 = scatter_add(%in, %c, %dx) : f32[9,3] @update
  %out1 = scatter_add(%out, %n, %do) : f32[8,3] @update
)";

constexpr char kOutputs[] = R"(
  result loss = %loss
  update in = %in1
  update out = %out1
)";

std::string Text(const std::string& lines, const std::string& more = "") {
  return kLeaves + lines + more + kOutputs + "}\n";
}

// `from` is in `lines`.
std::string With(const std::string& lines, const std::string& from,
                 const std::string& to) {
  EXPECT_THAT(lines, HasSubstr(from));
  return absl::StrReplaceAll(lines, {{from, to}});
}

void ExpectFused(const std::string& lines, const std::string& fused) {
  const PassResult result = RunPass(FuseSparseWindow, Text(lines));
  EXPECT_TRUE(result.changed);
  EXPECT_THAT(result.refusals, IsEmpty());
  EXPECT_EQ(result.text, Canonical(kLeaves + ("%0:3 = " + fused) +
                                   " : f32[], f32[9,3], f32[8,3] @update\n"
                                   "result loss = %0\n"
                                   "update in = %0#1\n"
                                   "update out = %0#2\n}\n"));
}

void ExpectKept(const std::string& text, const std::string& refusal) {
  const PassResult result = RunPass(FuseSparseWindow, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, ElementsAre(HasSubstr(refusal)));
}

TEST(FuseSparseWindowTest, MakesAStepOfSkipGramOneOp) {
  ExpectFused(kSkipGram,
              "sgns_window(%in, %out, %c, %mask, %n, %w, %lr) {positives=1}");
  const PassResult result = RunPass(FuseSparseWindow, Text(kSkipGram));
  EXPECT_THAT(
      result.graph.nodes().back()->fused_from,
      ElementsAre("gather_rows", "gather_rows", "block_matmul", "sigmoid_bce",
                  "sigmoid_bce_grad", "mul_scalar", "block_matmul",
                  "block_matmul", "scatter_add", "scatter_add"));
}

TEST(FuseSparseWindowTest, LabelsMakeItHierarchicalSoftmax) {
  ExpectFused(With(kSkipGram, "%w) {positives=1}", "%w, %y)"),
              "sgns_window(%in, %out, %c, %mask, %n, %w, %y, %lr)");
}

TEST(FuseSparseWindowTest, AMeanMakesItCbow) {
  ExpectFused(kCbow,
              "cbow_window(%in, %out, %c, %mean, %spread, %n, %w, %lr) "
              "{positives=1}");
  ExpectFused(With(kCbow, "%w) {positives=1}", "%w, %y)"),
              "cbow_window(%in, %out, %c, %mean, %spread, %n, %w, %y, %lr)");
}

TEST(FuseSparseWindowTest, TheUpdatesMayComeInEitherOrder) {
  std::string lines = With(kSkipGram, "scatter_add(%in, %c, %dx) : f32[9,3]",
                           "scatter_add(%out, %n, %do) : f32[8,3]");
  lines = With(lines, "%out1 = scatter_add(%out, %n, %do) : f32[8,3]",
               "%out1 = scatter_add(%in, %c, %dx) : f32[9,3]");
  lines = With(lines, "%in1", "%first");
  lines = With(lines, "%out1", "%in1");
  ExpectFused(With(lines, "%first", "%out1"),
              "sgns_window(%in, %out, %c, %mask, %n, %w, %lr) {positives=1}");
}

TEST(FuseSparseWindowTest, KeepsAGraphWithoutPairs) {
  const PassResult result = RunPass(FuseSparseWindow, R"(graph {
  %in = param f32[9,3]
  %0 = add(%in, %in) : f32[9,3]
  update in = %0
})");
  EXPECT_FALSE(result.changed);
  EXPECT_THAT(result.refusals, IsEmpty());
}

TEST(FuseSparseWindowTest, KeepsProductsOfMoreThanOneBlock) {
  std::string text =
      With(Text(kSkipGram), "%n = input i32[5]", "%n = input i32[10]");
  text = With(text, "[5,3]", "[10,3]");
  text = With(text, "f32[1,5]", "f32[2,5]");
  text = With(text, "block_matmul(%s, %o)", "block_matmul(%s, %o) {blocks=2}");
  text = With(text, "{trans_", "{blocks=2, trans_");
  ExpectKept(text, "fuse %4: %2 is no product of one block with rows");
}

TEST(FuseSparseWindowTest, KeepsWeightsOfMoreThanOneRow) {
  ExpectKept(
      With(Text(kSkipGram), "%w = input f32[1,5]", "%w = input f32[2,5]"),
      "fuse %4: the weights %w are not one row");
}

TEST(FuseSparseWindowTest, KeepsAMeanOfMoreThanOneRow) {
  std::string text =
      With(Text(kCbow), "%mean = input f32[1,4]", "%mean = input f32[2,4]");
  text = With(text, "%spread = input f32[1,4]", "%spread = input f32[2,4]");
  text = With(text, "{value=1} : f32[1]", "{value=1} : f32[2]");
  text = With(text, ": f32[1,", ": f32[2,");
  ExpectKept(text, "the mean %2 is not one row");
}

TEST(FuseSparseWindowTest, KeepsOneTableForBoth) {
  std::string lines = With(kSkipGram, "gather_rows(%out", "gather_rows(%in");
  lines = With(lines, "scatter_add(%out, %n, %do) : f32[8,3]",
               "scatter_add(%in1, %n, %do) : f32[9,3]");
  ExpectKept(With(Text(lines), "  update in = %in1\n  update out = %out1\n",
                  "  update in = %out1\n"),
             "fuse %4: both tables are %in");
}

TEST(FuseSparseWindowTest, KeepsAMeanWhoseMaskIsNotOne) {
  ExpectKept(Text(With(kCbow, "{value=1}", "{value=0.5}")),
             "the mask of the mean %2 is not 1");
}

TEST(FuseSparseWindowTest, KeepsALossOfOtherPairs) {
  ExpectKept(Text(With(kSkipGram, "sigmoid_bce(%z, %mask, %w) {positives=1}",
                       "sigmoid_bce(%z, %mask, %w) {positives=2}")),
             "%2 has no loss of the same pairs");
}

TEST(FuseSparseWindowTest, KeepsRowsThatAreNotGathered) {
  ExpectKept(Text(With(kSkipGram, "block_matmul(%x, %o) {trans_b=true}",
                       "block_matmul(%r, %o) {trans_b=true}")
                      .insert(0, "%r = input f32[4,3]")),
             "does not multiply gathered rows");
}

TEST(FuseSparseWindowTest, NamesAnSgdUpdateAsTheReason) {
  std::string lines =
      With(kSkipGram, "%s = mul_scalar(%d, %lr) {alpha=-1} : f32[4,5]",
           "%zi = constant() : f32[9,3] @backward\n"
           "%zo = constant() : f32[8,3]");
  lines = With(lines, "block_matmul(%s", "block_matmul(%d");
  lines = With(lines, "%in1 = scatter_add(%in, %c, %dx)",
               "%di = scatter_add(%zi, %c, %dx)");
  lines = With(lines, "%out1 = scatter_add(%out, %n, %do)",
               "%do1 = scatter_add(%zo, %n, %do)");
  ExpectKept(Text(lines,
                  "%in1 = sgd_update(%in, %di, %lr) : f32[9,3] @update\n"
                  "%out1 = sgd_update(%out, %do1, %lr) : f32[8,3] @update\n"),
             "the gradient of %in is scaled by lr, read at run time");
}

TEST(FuseSparseWindowTest, KeepsAGradientThatIsScaledByAnotherFactor) {
  ExpectKept(Text(With(kSkipGram, "{alpha=-1}", "{alpha=-2}")),
             "%4 is not scaled by -lr");
}

TEST(FuseSparseWindowTest, KeepsAnUpdateOfOtherRows) {
  const std::string other = "%other = input i32[4]\n";
  ExpectKept(Text(other + With(kSkipGram, "scatter_add(%in, %c",
                               "scatter_add(%in, %other")),
             "the gradient of %in is not scattered into it");
}

TEST(FuseSparseWindowTest, KeepsAGradientThatIsNotSpread) {
  ExpectKept(Text(With(kCbow, "block_matmul(%spread, %dh) {trans_a=true}",
                       "broadcast_rows(%r) {rows=4}"),
                  "%q = relu(%dh) : f32[1,3]\n"
                  "result q = %q\n")
                 .insert(sizeof(kLeaves) - 1, "%r = input f32[3]\n"),
             "is not spread over the contexts");
}

TEST(FuseSparseWindowTest, KeepsAValueWithSecondUse) {
  ExpectKept(Text(kSkipGram, "%r = relu(%z) : f32[4,5]\nresult r = %r\n"),
             "second use of %2 by relu");
  ExpectKept(Text(kSkipGram, "result z = %z\n"),
             "second use of %2 by an output");
}

TEST(FuseSparseWindowTest, KeepsAResultThatIsReadBetweenTheParts) {
  ExpectKept(Text(With(kSkipGram, "%d = sigmoid_bce_grad",
                       "%twice = add(%loss, %loss) : f32[]\n"
                       "%d = sigmoid_bce_grad"),
                  "result twice = %twice\n"),
             "second use of %3 by add");
}

}  // namespace
}  // namespace onestep
