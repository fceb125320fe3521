// SPDX-License-Identifier: Apache-2.0
// The graph of K models computes for each what its own graph does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/autodiff.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/pipeline.h"
#include "runtime/base/status.h"
#include "tests/compiler/passes/pass_test.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/oracle.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<bool> ToModels(Graph& graph, int64_t models,
                              std::vector<std::string> inputs = {"lr"}) {
  PassContext context{graph, {}, {}, {models, std::move(inputs)}};
  return VectorizeModels(context);
}

bool IsPerModel(const Graph& graph, const std::string& name) {
  return graph.FindLeaf(name)->types[0].models > 0;
}

// Values of the leaves for each of the models, and of all models together.
struct Bindings {
  std::vector<TensorMap> solo;
  TensorMap all;
};

Bindings DrawBindings(const Graph& vectorized, const TensorMap& first,
                      MlpRandom& random, int64_t models) {
  Bindings bindings;
  bindings.all = first;
  for (int64_t k = 0; k < models; ++k) bindings.solo.push_back(first);
  for (const auto& [name, values] : first) {
    if (!IsPerModel(vectorized, name)) continue;
    std::vector<double>& all = bindings.all[name];
    all.clear();
    for (TensorMap& solo : bindings.solo) {
      for (double& value : solo[name]) {
        value = std::abs(random.Uniform());
        all.push_back(value);
      }
    }
  }
  return bindings;
}

// Model k's part of what all models gave, value by value; or what they share.
void ExpectEachAlone(const std::vector<TensorMap>& alone,
                     const TensorMap& together, double tolerance) {
  for (size_t k = 0; k < alone.size(); ++k) {
    ASSERT_EQ(alone[k].size(), together.size());
    for (const auto& [name, want] : alone[k]) {
      const std::vector<double>& got = together.at(name);
      const bool shared = got.size() == want.size();
      ASSERT_TRUE(shared || got.size() == want.size() * alone.size()) << name;
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(got[shared ? i : k * want.size() + i], want[i], tolerance)
            << name << "[" << i << "] of model " << k;
      }
    }
  }
}

std::vector<TensorMap> EvaluateAlone(const Graph& graph,
                                     const Bindings& bindings) {
  std::vector<TensorMap> values;
  for (const TensorMap& solo : bindings.solo) {
    absl::StatusOr<TensorMap> outputs = Evaluate(graph, solo);
    EXPECT_OK(outputs);
    values.push_back(*std::move(outputs));
  }
  return values;
}

TEST(VectorizeTest, ParamsAndNamedInputsGetTheAxisAndTheBatchDoesNot) {
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %x = input f32[4,3]
    %labels = input i32[4]
    %lr = input f32[]
    %w = param f32[3,2]
    %0 = scale(%x) {alpha=0.5} : f32[4,3]
    %1 = matmul(%0, %w) : f32[4,2]
    %2 = nll_loss(%1, %labels) : f32[]
    %3 = sgd_update(%w, %w, %lr) : f32[3,2]
    update w = %3
    result loss = %2
  })"));
  ASSERT_OK_AND_ASSIGN(const bool changed, ToModels(graph, 5));
  EXPECT_TRUE(changed);
  ASSERT_OK(graph.Verify());
  EXPECT_EQ(PrintGraph(graph), Canonical(R"(graph {
    %x = input f32[4,3]
    %labels = input i32[4]
    %lr = input 5xf32[]
    %w = param 5xf32[3,2]
    %0 = scale(%x) {alpha=0.5} : f32[4,3]
    %1 = matmul(%0, %w) : 5xf32[4,2]
    %2 = nll_loss(%1, %labels) : 5xf32[]
    %3 = sgd_update(%w, %w, %lr) : 5xf32[3,2]
    update w = %3
    result loss = %2
  })"));
}

TEST(VectorizeTest, WhatIsSharedAndWantedPerModelIsBroadcast) {
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %x = input f32[3]
    %w = param f32[3]
    %0 = constant() {value=2} : f32[3]
    %1 = add(%w, %x) : f32[3]
    %2 = mul(%1, %0) : f32[3]
    update w = %x
    result y = %2
  })"));
  ASSERT_OK(ToModels(graph, 2, {}));
  ASSERT_OK(graph.Verify());
  EXPECT_EQ(PrintGraph(graph), Canonical(R"(graph {
    %x = input f32[3]
    %w = param 2xf32[3]
    %0 = constant() {value=2} : f32[3]
    %1 = broadcast_models(%x) {models=2} : 2xf32[3]
    %2 = add(%w, %1) : 2xf32[3]
    %3 = constant() {value=2} : 2xf32[3]
    %4 = mul(%2, %3) : 2xf32[3]
    %5 = broadcast_models(%x) {models=2} : 2xf32[3] @update
    update w = %5
    result y = %4
  })"));
}

TEST(VectorizeTest, EachModelOfRandomTrainStepsIsAsAlone) {
  MlpRandom random(5);
  for (int g = 0; g < 100; ++g) {
    const RandomMlp mlp = MakeRandomMlp(random);
    const int64_t models = 1 + random.Below(4);
    Graph textbook = mlp.graph.Clone();
    ASSERT_OK(ToModels(textbook, models));
    SCOPED_TRACE(absl::StrCat("graph ", g, "\n", PrintGraph(textbook)));
    ASSERT_OK(textbook.Verify());
    const Bindings bindings =
        DrawBindings(textbook, mlp.bindings, random, models);
    const std::vector<TensorMap> alone = EvaluateAlone(mlp.graph, bindings);

    ASSERT_OK_AND_ASSIGN(const TensorMap together,
                         Evaluate(textbook, bindings.all));
    ExpectEachAlone(alone, together, 0);

    Graph fused = mlp.graph.Clone();
    ASSERT_OK(RunPipeline(
        fused, {.check_reports = true, .vectorize = {.models = models}}));
    ASSERT_OK_AND_ASSIGN(const TensorMap fused_values,
                         Evaluate(AsRunInPlace(fused), bindings.all));
    ExpectEachAlone(alone, fused_values, 1e-11);
    if (HasFailure()) return;
  }
}

TEST(VectorizeTest, FusionFindsInTheGraphOfManyModelsWhatItFindsInThatOfOne) {
  MlpRandom random(6);
  for (int g = 0; g < 100; ++g) {
    const RandomMlp mlp = MakeRandomMlp(random);
    Graph one = mlp.graph.Clone(), many = mlp.graph.Clone();
    ASSERT_OK(RunPipeline(one, {}));
    ASSERT_OK(RunPipeline(many, {.vectorize = {.models = 3}}));
    std::vector<std::string> want, got;
    for (const auto& node : one.nodes()) want.push_back(node->op());
    for (const auto& node : many.nodes()) {
      if (node->kind != OpKind::kBroadcastModels) {
        got.push_back(node->op());
      }
    }
    ASSERT_EQ(got, want) << PrintGraph(one) << PrintGraph(many);
  }
}

// Every differentiable op, with the weight on either side of a product.
constexpr char kForward[] = R"(graph {
    %x = input f32[4,3]
    %t = input f32[4,2]
    %labels = input i32[4]
    %s = input f32[]
    %w = param f32[3,5]
    %b = param f32[5]
    %v = param f32[2,5]
    %u = param f32[4,2]
    %0 = matmul(%x, %w) : f32[4,5]
    %1 = add_bias(%0, %b) : f32[4,5]
    %2 = relu(%1) : f32[4,5]
    %3 = tanh(%2) : f32[4,5]
    %4 = sigmoid(%3) : f32[4,5]
    %5 = gelu(%4) : f32[4,5]
    %6 = reduce_rows(%5) : f32[5]
    %7 = broadcast_rows(%6) {rows=4} : f32[4,5]
    %8 = add(%7, %5) : f32[4,5]
    %9 = matmul(%8, %v) {trans_b=true} : f32[4,2]
    %10 = matmul(%x, %w) : f32[4,5]
    %11 = matmul(%10, %v) {trans_b=true} : f32[4,2]
    %12 = mul(%9, %11) : f32[4,2]
    %13 = scale(%12) {alpha=0.5} : f32[4,2]
    %14 = mul_scalar(%13, %s) : f32[4,2]
    %15 = softmax(%14) : f32[4,2]
    %16 = mul(%15, %u) : f32[4,2]
    %17 = nll_loss(%16, %labels) : f32[]
    %18 = mse_loss(%14, %t) : f32[]
    %19 = add(%17, %18) : f32[]
    result loss = %19
  })";

absl::Status AddGradients(Graph& graph) {
  std::vector<Value> params;
  const std::vector<std::string> names = {"w", "b", "v", "u"};
  for (const std::string& name : names) {
    params.push_back(graph.FindLeaf(name)->result());
  }
  ASSIGN_OR_RETURN(const std::vector<Value> gradients,
                   Gradients(graph, graph.outputs()[0].value, params));
  for (size_t i = 0; i < names.size(); ++i) {
    graph.AddResult("d" + names[i], gradients[i]);
  }
  return graph.Verify();
}

TEST(VectorizeTest, GradientsBeforeAndAfterAreThoseOfEachModel) {
  ASSERT_OK_AND_ASSIGN(const Graph forward, ParseGraph(kForward));
  Graph one = forward.Clone(), before = forward.Clone();
  Graph after = forward.Clone();
  ASSERT_OK(AddGradients(one));
  ASSERT_OK(AddGradients(before));
  ASSERT_OK(ToModels(before, 3, {"s"}));
  ASSERT_OK(ToModels(after, 3, {"s"}));
  ASSERT_OK(AddGradients(after));

  MlpRandom random(7);
  TensorMap values;
  for (const auto& node : forward.nodes()) {
    if (!node->def().Has(kLeaf)) continue;
    for (int64_t i = 0; i < node->types[0].num_elements(); ++i) {
      values[node->name()].push_back(node->name() == "labels"
                                         ? static_cast<double>(random.Below(2))
                                         : random.Uniform());
    }
  }
  const Bindings bindings = DrawBindings(before, values, random, 3);
  const std::vector<TensorMap> alone = EvaluateAlone(one, bindings);
  for (const Graph* graph : {&before, &after}) {
    ASSERT_OK_AND_ASSIGN(const TensorMap got, Evaluate(*graph, bindings.all));
    ExpectEachAlone(alone, got, 1e-12);
  }
}

TEST(VectorizeTest, AGradientForWhatModelsShareIsRefused) {
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %x = input f32[4,3]
    %labels = input i32[4]
    %w = param f32[3,2]
    %0 = matmul(%x, %w) : f32[4,2]
    %1 = nll_loss(%0, %labels) : f32[]
    result loss = %1
  })"));
  ASSERT_OK(ToModels(graph, 2, {}));
  const Value x = graph.FindLeaf("x")->result();
  EXPECT_THAT(
      Gradients(graph, graph.outputs()[0].value, {x}).status().message(),
      HasSubstr("%x is shared by models that differ"));
}

TEST(VectorizeTest, HyperParametersAsInputsDifferBetweenModels) {
  constexpr char kUpdates[] = R"(graph {
    %lr = input f32[]
    %step = input f32[]
    %momentum = input f32[]
    %decay = input f32[]
    %dw = input f32[2]
    %w = param f32[2]
    %w2 = param f32[2]
    %v2 = param f32[2]
    %w3 = param f32[2]
    %m3 = param f32[2]
    %v3 = param f32[2]
    %0 = sgd_update(%w, %dw, %lr, %decay) : f32[2]
    %1:2 = momentum_update(%w2, %dw, %v2, %lr, %momentum, %decay) : f32[2], f32[2]
    %2:3 = adam_update(%w3, %dw, %m3, %v3, %lr, %step, %decay) : f32[2], f32[2], f32[2]
    update w = %0
    update w2 = %1#0
    update w3 = %2#0
  })";
  ASSERT_OK_AND_ASSIGN(const Graph one, ParseGraph(kUpdates));
  Graph many = one.Clone();
  ASSERT_OK(ToModels(many, 3, {"lr", "momentum", "decay"}));
  ASSERT_OK(many.Verify());
  MlpRandom random(8);
  TensorMap values;
  for (const auto& node : one.nodes()) {
    if (!node->def().Has(kLeaf)) continue;
    for (int64_t i = 0; i < node->types[0].num_elements(); ++i) {
      values[node->name()].push_back(node->name() == "step" ? 2 : 0.25);
    }
  }
  const Bindings bindings = DrawBindings(many, values, random, 3);
  ASSERT_OK_AND_ASSIGN(const TensorMap got, Evaluate(many, bindings.all));
  ExpectEachAlone(EvaluateAlone(one, bindings), got, 0);
}

TEST(VectorizeTest, SaysWhatItCannotDo) {
  const auto message = [](const std::string& text, int64_t models,
                          const std::vector<std::string>& inputs) {
    absl::StatusOr<Graph> graph = ParseGraph(text);
    EXPECT_OK(graph);
    return std::string(ToModels(*graph, models, inputs).status().message());
  };
  EXPECT_EQ(message("graph {\n %lr = input f32[]\n}", 2, {"rate"}),
            "want names of inputs, got rate");
  EXPECT_EQ(message("graph {\n %w = param 3xf32[2]\n}", 2, {}),
            "the graph has a model axis already");
  EXPECT_EQ(message(R"(graph {
    %rows = param f32[5,2]
    %i = input i32[3]
    %0 = gather_rows(%rows, %i) : f32[3,2]
    result y = %0
  })",
                    2, {}),
            "gather_rows: want operand 0 shared by the models, got "
            "2xf32[5,2]");
}

TEST(VectorizeTest, NoModelsLeaveTheGraphAsItIs) {
  MlpRandom random(9);
  const RandomMlp mlp = MakeRandomMlp(random);
  Graph graph = mlp.graph.Clone();
  ASSERT_OK_AND_ASSIGN(const bool changed, ToModels(graph, 0));
  EXPECT_FALSE(changed);
  EXPECT_EQ(PrintGraph(graph), PrintGraph(mlp.graph));
}

}  // namespace
}  // namespace onestep
