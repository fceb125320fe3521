// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "tests/compiler/passes/mlp_graph.h"
#include "tests/compiler/passes/pass_test.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr SparseInput kSparse = {.nonzeros = 13};

std::string Text(const std::string& lines) {
  return R"(graph {
  %images = input u8[9,3]
  %indices = input i32[4]
  %w = param f32[3,2]
  %b = input f32[2]
  %d = input f32[4,2]
)" + lines +
         "}\n";
}

void ExpectKept(const std::string& text, const std::string& refusal) {
  const PassResult result = RunPass(SparsifyInput, text, kSparse);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, Canonical(text));
  EXPECT_THAT(result.refusals, ElementsAre(refusal));
}

TEST(SparseInputTest, LeavesTheZerosOutOfBothProducts) {
  const PassResult result = RunPass(SparsifyInput, Text(R"(
  %0 = gather_convert(%images, %indices) {alpha=0.5} : f32[4,3] @forward
  %1 = matmul(%0, %w, %b) {bias=true, activation=relu} : f32[4,2] @forward
  %2 = matmul(%0, %d, %w) {trans_a=true, accumulate=true} : f32[3,2] @update
  update w = %2
  result a = %1
)"),
                                    kSparse);
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = gather_sparse(%images, %indices) {alpha=0.5, nonzeros=13} : i32[4,34] @forward
  %1 = sparse_matmul(%0, %w, %b) {bias=true, activation=relu} : f32[4,2] @forward
  %2 = sparse_outer(%0, %d, %w) {rows=3, accumulate=true} : f32[3,2] @update
  update w = %2
  result a = %1
)")));
  EXPECT_THAT(result.refusals, ElementsAre());
  EXPECT_TRUE(InPlaceLegal(result.graph));
}

TEST(SparseInputTest, TakesPlainProducts) {
  const PassResult result = RunPass(SparsifyInput, Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%0, %w) : f32[4,2]
  %2 = matmul(%0, %d) {trans_a=true} : f32[3,2]
  result a = %1
  result dw = %2
)"),
                                    kSparse);
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = gather_sparse(%images, %indices) {nonzeros=13} : i32[4,34]
  %1 = sparse_matmul(%0, %w) : f32[4,2]
  %2 = sparse_outer(%0, %d) {rows=3} : f32[3,2]
  result a = %1
  result dw = %2
)")));
}

TEST(SparseInputTest, TakesOneOfTwoBatches) {
  const PassResult result = RunPass(SparsifyInput, Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = gather_convert(%images, %indices) {alpha=2} : f32[4,3]
  %2 = matmul(%0, %w) : f32[4,2]
  result a = %2
  result x = %1
)"),
                                    kSparse);
  EXPECT_EQ(result.text, Canonical(Text(R"(
  %0 = gather_sparse(%images, %indices) {nonzeros=13} : i32[4,34]
  %1 = gather_convert(%images, %indices) {alpha=2} : f32[4,3]
  %2 = sparse_matmul(%0, %w) : f32[4,2]
  result a = %2
  result x = %1
)")));
  EXPECT_THAT(result.refusals, ElementsAre("make %1 sparse: %1 is an output"));
}

TEST(SparseInputTest, KeepsEverythingWhenNothingIsAsked) {
  const std::string text = Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%0, %w) : f32[4,2]
  result a = %1
)");
  const PassResult result = RunPass(SparsifyInput, text);
  EXPECT_FALSE(result.changed);
  EXPECT_THAT(result.refusals, ElementsAre());
}

TEST(SparseInputTest, KeepsABatchThatIsAnOutput) {
  ExpectKept(Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%0, %w) : f32[4,2]
  result a = %1
  result x = %0
)"),
             "make %0 sparse: %0 is an output");
}

TEST(SparseInputTest, KeepsABatchThatAnotherOpReads) {
  ExpectKept(Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%0, %w) : f32[4,2]
  %2 = relu(%0) : f32[4,3]
  result a = %1
  result y = %2
)"),
             "make %0 sparse: %2 = relu reads %0");
}

TEST(SparseInputTest, KeepsABatchThatIsTheSecondFactor) {
  ExpectKept(Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%d, %0) {trans_a=true} : f32[2,3]
  result y = %1
)"),
             "make %0 sparse: %1 = matmul reads %0 as its second factor");
  ExpectKept(Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%0, %0) {trans_a=true} : f32[3,3]
  result y = %1
)"),
             "make %0 sparse: %1 = matmul reads %0 as its second factor");
}

TEST(SparseInputTest, KeepsABatchInOtherProducts) {
  const std::string refusal =
      "make %0 sparse: %1 = matmul reads %0, and is neither x w nor x^T dz";
  ExpectKept(Text(R"(
  %v = input f32[2,3]
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%0, %v) {trans_b=true} : f32[4,2]
  result y = %1
)"),
             refusal);
  ExpectKept(Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%0, %w, %d) {accumulate=true} : f32[4,2]
  result y = %1
)"),
             refusal);
  ExpectKept(Text(R"(
  %0 = gather_convert(%images, %indices) : f32[4,3]
  %1 = matmul(%0, %d, %b) {trans_a=true, bias=true} : f32[3,2]
  result y = %1
)"),
             refusal);
}

TEST(SparseInputTest, KeepsRowsThatAreTooLong) {
  ExpectKept(R"(graph {
  %images = input u8[9,8388608]
  %indices = input i32[4]
  %w = input f32[8388608,2]
  %0 = gather_convert(%images, %indices) : f32[4,8388608]
  %1 = matmul(%0, %w) : f32[4,2]
  result a = %1
})",
             "make %0 sparse: want rows of up to 8388607 values, got 8388608");
}

TEST(SparseInputTest, KeepsRowsThatNoFusionConverted) {
  ExpectKept(Text(R"(
  %0 = gather_rows(%images, %indices) : u8[4,3]
  %1 = cast(%0) : f32[4,3]
  %2 = matmul(%1, %w) : f32[4,2]
  result a = %2
)"),
             "make %0 sparse: a gather_rows, want a gather_convert, which "
             "fusion makes");
}

constexpr SparseInput kMnist = {.nonzeros = 8994156};

TEST(SparseInputTest, TakesTheReferenceStep) {
  Graph graph = MakeMlp({});
  ASSERT_OK(RunPipeline(graph, {.check_reports = true, .sparse = kMnist}));
  const std::string text = PrintGraph(graph);
  EXPECT_THAT(text, HasSubstr("gather_sparse(%images, %indices) "
                              "{alpha=0.003921569, nonzeros=8994156} : "
                              "i32[32,556] @forward"));
  EXPECT_THAT(text, HasSubstr("sparse_matmul(%0, %w1, %b1) {bias=true, "
                              "activation=relu} : f32[32,128] @forward"));
  EXPECT_THAT(text, HasSubstr("sparse_outer(%0, %5#0, %w1) {rows=784, "
                              "accumulate=true} : f32[784,128] @update"));
  EXPECT_TRUE(InPlaceLegal(graph));
}

TEST(SparseInputTest, LeavesTheUpdatesOfOtherOptimizersDense) {
  for (OpKind update : {OpKind::kMomentumUpdate, OpKind::kAdamUpdate}) {
    Graph graph = MakeMlp({.update = update});
    ASSERT_OK_AND_ASSIGN(const auto records,
                         RunPipeline(graph, {.sparse = kMnist}));
    EXPECT_THAT(PrintGraph(graph),
                HasSubstr("{rows=784} : f32[784,128] @backward"));
    EXPECT_THAT(records.back().refusals,
                Contains(HasSubstr(
                    absl::StrCat(GetOpDef(update).name, " reads all of %"))));
  }
}

TEST(SparseInputTest, WithFusionOffSaysWhyNot) {
  Graph graph = MakeMlp({});
  ASSERT_OK_AND_ASSIGN(const auto records,
                       RunPipeline(graph, {.fuse = false, .sparse = kMnist}));
  EXPECT_THAT(records.back().refusals,
              Contains(HasSubstr("want a gather_convert")));
  EXPECT_THAT(PrintGraph(graph), Not(HasSubstr("sparse")));
}

}  // namespace
}  // namespace onestep
