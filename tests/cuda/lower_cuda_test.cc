// SPDX-License-Identifier: Apache-2.0
// The lowering to a GPU, op by op: against the float64 oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/pipeline.h"
#include "runtime/base/status.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/cuda/cuda_device.h"
#include "tests/kernels/op_cases.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::HasSubstr;

// As of op_test.cc: fp32 sums of up to 129 products.
constexpr double kNmse = 1e-11;

class LowerCudaTest : public CudaTest {
 protected:
  absl::StatusOr<TensorMap> Run(const Graph& graph, const TensorMap& bindings,
                                const CudaRequest& request, int64_t steps = 1) {
    Graph copy = graph.Clone();
    CudaOptions options;
    options.cuda = &cuda();
    CudaReport report;
    ASSIGN_OR_RETURN(const std::unique_ptr<CudaProgram> program,
                     LowerToCuda(copy, request, options, report));
    return RunExecutable(*program, graph, bindings, steps);
  }

  void ExpectOracle(bool library) {
    ForEachOpCase([&](const OpCase& c) {
      if (!GetOpDef(c.op).RunsOn(kCuda)) return;
      SCOPED_TRACE(c.name);
      ASSERT_OK_AND_ASSIGN(const TensorMap want, Evaluate(c.graph, c.bindings));
      ASSERT_OK_AND_ASSIGN(
          const TensorMap got,
          Run(c.graph, c.bindings,
              {.way = CudaWay::kOps, .fuse = true, .library = library}));
      for (const auto& [name, values] : want) {
        EXPECT_LE(Nmse(got.at(name), values), kNmse) << name;
      }
    });
  }
};

TEST_F(LowerCudaTest, OurKernelsEqualTheOracle) { ExpectOracle(false); }

TEST_F(LowerCudaTest, TheLibrarysMatMulsEqualTheOracle) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const char* epilogue :
           {"", ", bias=true", ", bias=true, activation=relu",
            ", bias=true, activation=tanh", ", activation=gelu",
            ", accumulate=true"}) {
        const bool bias =
            absl::string_view(epilogue).find("bias") != absl::string_view::npos;
        const bool sum = absl::string_view(epilogue).find("accumulate") !=
                         absl::string_view::npos;
        const std::string text = absl::StrCat(
            "graph {\n  %a = input f32[", trans_a ? "9,5" : "5,9", "]\n",
            "  %b = input f32[", trans_b ? "7,9" : "9,7", "]\n",
            bias  ? "  %c = input f32[7]\n"
            : sum ? "  %c = input f32[5,7]\n"
                  : "",
            "  %0 = matmul(%a, %b", bias || sum ? ", %c" : "",
            ") {trans_a=", trans_a ? "true" : "false",
            ", trans_b=", trans_b ? "true" : "false", epilogue,
            "} : f32[5,7]\n  result y = %0\n}");
        SCOPED_TRACE(text);
        ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(text));
        MlpRandom random(3);
        TensorMap x;
        for (const auto& node : graph.nodes()) {
          if (!node->def().Has(kLeaf)) continue;
          auto& values = x[node->name()];
          values.resize(node->types[0].num_elements());
          for (double& v : values) v = random.Uniform();
        }
        x = RoundToLeaves(graph, x);
        ASSERT_OK_AND_ASSIGN(const TensorMap want, Evaluate(graph, x));
        ASSERT_OK_AND_ASSIGN(const TensorMap got,
                             Run(graph, x, {.way = CudaWay::kGraph}));
        EXPECT_LE(Nmse(got.at("y"), want.at("y")), kNmse);
      }
    }
  }
}

// fp32 steps of small nets with values of order one, as of
// random_chain_test.cc.
void ExpectNear(const TensorMap& got, const TensorMap& want) {
  for (const auto& [name, values] : want) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double bound = 2e-5 * std::max(1.0, std::abs(values[i]));
      ASSERT_NEAR(got.at(name)[i], values[i], bound) << name << "[" << i << "]";
    }
  }
}

TEST_F(LowerCudaTest, RandomStepsEqualTheOracle) {
  MlpRandom random(17);
  // On a device the library's candidates are timed for each of their shapes.
  const int graphs = emulated() ? 60 : 12;
  for (int i = 0; i < graphs; ++i) {
    RandomMlp mlp = MakeRandomMlp(random);
    mlp.bindings = RoundToLeaves(mlp.graph, mlp.bindings);
    SCOPED_TRACE(absl::StrCat("graph ", i, "\n", PrintGraph(mlp.graph)));
    ASSERT_OK_AND_ASSIGN(const TensorMap want,
                         Evaluate(mlp.graph, mlp.bindings));
    for (const bool fuse : {false, true}) {
      Graph graph = mlp.graph.Clone();
      PipelineOptions options;
      options.fuse = fuse;
      ASSERT_OK(RunPipeline(graph, options));
      for (const CudaWay way : {CudaWay::kOps, CudaWay::kGraph}) {
        const bool library = (i + static_cast<int>(way)) % 2 == 0;
        ASSERT_OK_AND_ASSIGN(
            const TensorMap got,
            Run(graph, mlp.bindings,
                {.way = way, .fuse = fuse, .library = library}));
        ExpectNear(got, want);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(LowerCudaTest, AConstantIsThereBeforeTheFirstStep) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(graph {
    %x = input f32[3]
    %0 = constant() {value=2.5} : f32[3]
    %1 = mul(%x, %0) : f32[3]
    result y = %1
  })"));
  ASSERT_OK_AND_ASSIGN(const TensorMap got, Run(graph, {{"x", {1, 2, 3}}}, {}));
  EXPECT_EQ(got.at("y"), (std::vector<double>{2.5, 5, 7.5}));
}

TEST_F(LowerCudaTest, RefusesWhatAGpuHasNoKernelFor) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(graph {
    %x = input f32[3]
    %0 = exchange(%x) {workers=1} : f32[3]
    result y = %0
  })"));
  EXPECT_THAT(Run(graph, {{"x", {1, 2, 3}}}, {}).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("exchange on device gpu")));
}

}  // namespace
}  // namespace onestep
