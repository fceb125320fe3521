// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compiler/passes/random_mlp.h"
#include "tests/kernels/op_cases.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::HasSubstr;

TEST(TextTest, EveryOpRoundTrips) {
  ForEachOpCase([](const OpCase& c) {
    const std::string text = PrintGraph(c.graph);
    ASSERT_OK_AND_ASSIGN(const Graph parsed, ParseGraph(text));
    EXPECT_EQ(PrintGraph(parsed), text);
    for (int i = 0; i < c.graph.size(); ++i) {
      EXPECT_EQ(parsed.nodes()[i]->attrs, c.graph.nodes()[i]->attrs) << text;
      EXPECT_EQ(parsed.nodes()[i]->types, c.graph.nodes()[i]->types) << text;
    }
  });
}

TEST(TextTest, AnExchangeRoundTrips) {
  Graph g;
  const Value x = g.AddInput("x", F32({3, 2}));
  const ExchangeAttrs sum{.index = 7, .workers = 3};
  const ExchangeAttrs cut{
      .workers = 2, .from = 1, .to = 0, .full = 5, .begin = 1, .size = 2};
  g.Add(OpKind::kExchange, {x}, sum);
  g.AddResult("y", g.Add(OpKind::kExchange, {x}, cut));
  EXPECT_EQ(PrintGraph(g), R"(graph {
  %x = input f32[3,2]
  %0 = exchange(%x) {index=7, workers=3} : f32[3,2]
  %1 = exchange(%x) {workers=2, from=1, to=0, full=5, begin=1, size=2} : f32[2,5]
  result y = %1
}
)");
  ASSERT_OK_AND_ASSIGN(const Graph parsed, ParseGraph(PrintGraph(g)));
  EXPECT_EQ(parsed.nodes()[1]->as<ExchangeAttrs>(), sum);
  EXPECT_EQ(parsed.nodes()[2]->as<ExchangeAttrs>(), cut);
}

TEST(TextTest, TheTypesOfManyModelsRoundTrip) {
  constexpr char kText[] = R"(graph {
  %x = input f32[3,2]
  %lr = input 16xf32[]
  %w = param 16xf32[2,4]
  %0 = broadcast_models(%x) {models=16} : 16xf32[3,2]
  %1 = matmul(%x, %w) : 16xf32[3,4]
  %2 = mul_scalar(%1, %lr) : 16xf32[3,4]
  result each = %0
  result y = %2
}
)";
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(kText));
  EXPECT_EQ(PrintGraph(graph), kText);
  EXPECT_EQ(graph.FindLeaf("w")->types[0].models, 16);
  EXPECT_EQ(graph.FindLeaf("w")->types[0].num_elements(), 8);
  EXPECT_EQ(graph.FindLeaf("w")->types[0].bytes(), 16 * 8 * 4);
}

TEST(TextTest, ModelsThatDoNotFitAreRefused) {
  const auto message = [](const std::string& lines) {
    return std::string(
        ParseGraph("graph {\n" + lines + "\n}").status().message());
  };
  EXPECT_THAT(message("%x = input 0xf32[2]"),
              HasSubstr("want models as in 16xf32[32,10], got 0xf32[2]"));
  EXPECT_THAT(message("%x = input 1000000xf32[2000000]"),
              HasSubstr("at most 2^40 elements"));
  EXPECT_THAT(message("%x = input 2xf32[2]\n%w = param 3xf32[2]"),
              HasSubstr("want 2 models as another value, got 3xf32[2]"));
  EXPECT_THAT(message("%x = input 2xf32[2]\n%y = input f32[2]\n"
                      "%0 = add(%x, %y) : 2xf32[2]"),
              HasSubstr("add: want operand 1 of 2 models, got f32[2]"));
}

TEST(TextTest, WholeStepsRoundTripWithTheirPhases) {
  MlpRandom random(5);
  for (int i = 0; i < 50; ++i) {
    const RandomMlp mlp = MakeRandomMlp(random);
    const std::string text = PrintGraph(mlp.graph);
    ASSERT_OK_AND_ASSIGN(const Graph parsed, ParseGraph(text));
    EXPECT_EQ(PrintGraph(parsed), text);
    for (int n = 0; n < parsed.size(); ++n) {
      EXPECT_EQ(parsed.nodes()[n]->phase, mlp.graph.nodes()[n]->phase);
    }
  }
}

TEST(TextTest, FloatsReadBackToTheSameBits) {
  for (float alpha : {0.1f, 1.0f / 255, 1e-38f, 3.4028235e38f, -0.0f,
                      16777217.0f, 0.333333343f}) {
    Graph g;
    g.AddResult("y", g.Add(OpKind::kScale, {g.AddInput("x", F32({}))},
                           ScaleAttrs{alpha}));
    ASSERT_OK_AND_ASSIGN(const Graph parsed, ParseGraph(PrintGraph(g)));
    EXPECT_EQ(parsed.nodes()[1]->as<ScaleAttrs>().alpha, alpha);
  }
}

TEST(TextTest, CommentsAndSpacesDoNotCount) {
  ASSERT_OK_AND_ASSIGN(const Graph g, ParseGraph(R"(
    # a step
    graph {
      %x = input f32[2]   # in
      %0=relu( %x ):f32[2]
      result y = %0
    }
  )"));
  EXPECT_EQ(PrintGraph(g),
            "graph {\n  %x = input f32[2]\n  %0 = relu(%x) : f32[2]\n"
            "  result y = %0\n}\n");
}

struct Bad {
  const char* body;
  const char* message;
};

class TextErrorTest : public testing::TestWithParam<Bad> {};

TEST_P(TextErrorTest, NamesTheLineAndWhatWasWanted) {
  const std::string text =
      std::string("graph {\n  %x = input f32[2,3]\n") + GetParam().body + "\n}";
  EXPECT_THAT(ParseGraph(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr(GetParam().message)))
      << text;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, TextErrorTest,
    testing::Values(
        Bad{"%0 = relux(%x) : f32[2,3]", "line 3: want an op, got relux"},
        Bad{"%0 = relu(%y) : f32[2,3]", "want a value defined above, got %y"},
        Bad{"%0 = relu(%x) : f32[2,4]", "line 3: want f32[2,3]"},
        Bad{"%0 = relu(%x) : g32[2,3]", "want a type like f32[32,10]"},
        Bad{"%0 = relu(%x) : f32[2,", "want a type like f32[32,10]"},
        Bad{"%0 = relu(%x) :", "want a type like f32[32,10]"},
        Bad{"%0 = relu(%x, %x) : f32[2,3]", "want 1 operands, got 2"},
        Bad{"%0 = relu(%x : f32[2,3]", "want , or )"},
        Bad{"%0 = relu(%x) : f32[2,3] @later", "want a phase, got later"},
        Bad{"%0 = relu(%x) : f32[2,3] more", "want the end of the line"},
        Bad{"%0 = scale(%x) {beta=2} : f32[2,3]", "a field of scale"},
        Bad{"%0 = scale(%x) {alpha=two} : f32[2,3]", "a value of alpha"},
        Bad{"%0 = activation_grad(%x, %x) {activation=swish} : f32[2,3]",
            "want a value of activation, got swish"},
        Bad{"%0 = loss_grad(%x, %x) {loss=l1} : f32[]", "a value of loss"},
        Bad{"%x = input f32[2]", "want a new name, got %x"},
        Bad{"%y = input f32[99999999999,99999999999]", "at most 2^40"},
        Bad{"%y = input f32[0]", "want sizes from 1"},
        Bad{"%y = input f32[-3]", "want sizes from 1"},
        Bad{"%y = input f32[two]", "want a size, got two"},
        Bad{"%0 = constant(%x) {value=1} : f32[2]", "want constant()"},
        Bad{"%0 = constant() {value=1} : i32[2]", "want constant()"},
        Bad{"update x = %x", "want a param, got x"},
        Bad{"result y = %x#1", "want one of 1 results, got %x#1"},
        Bad{"}\n%y = input f32[2]", "want nothing after `}`"}));

TEST(TextTest, AGraphThatDoesNotEndIsRefused) {
  EXPECT_THAT(ParseGraph("graph {\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want `}`, got the end")));
  EXPECT_THAT(ParseGraph("step {\n}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 1: want `graph {`, got step {")));
}

}  // namespace
}  // namespace onestep
