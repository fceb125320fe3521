// SPDX-License-Identifier: Apache-2.0
// Train steps of many models on a GPU: each has the bits of the step of its own
// on the same tier, also where another diverges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/ir/text.h"
#include "runtime/base/status.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/cuda/cuda_device.h"
#include "tests/kernels/op_cases.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/model.h"

namespace onestep {
namespace {

using testing::Contains;
using testing::HasSubstr;

// What leaves and results hold, by name. That of a value which advances with
// the step is of all steps.
using Memory = std::map<std::string, std::string>;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}
std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A graph of one model with what it is to be run on.
struct Step {
  Graph graph;
  Memory leaves;
  // Those that differ between the models; params all do.
  std::vector<std::string> inputs;
  int64_t steps = 3;
};

// The types of leaves and results, as of `models`.
absl::StatusOr<std::map<std::string, TensorType>> TypesOf(const Step& step,
                                                          int64_t models) {
  Graph graph = step.graph.Clone();
  PipelineOptions options;
  options.fuse = false;
  options.vectorize = {models, step.inputs};
  RETURN_IF_ERROR(RunPipeline(graph, options).status());
  std::map<std::string, TensorType> types;
  for (const auto& node : graph.nodes()) {
    if (node->def().Has(kLeaf) && node->kind != OpKind::kConstant) {
      types[node->name()] = node->types[0];
    }
  }
  for (const Output& out : graph.outputs()) {
    if (out.kind == Output::kResult) types[out.name] = out.value.type();
  }
  return types;
}

class ModelsCudaTest : public CudaTest {
 protected:
  CompileOptions Options(Dispatch dispatch, bool fuse,
                         CudaTier tier = CudaTier::kLibrary,
                         Kernels kernels = Kernels::kLoops) {
    CompileOptions options;
    options.device = Device::kGpu;
    options.dispatch = dispatch;
    options.fuse = fuse;
    options.kernels = tier == CudaTier::kLibrary ? kernels : Kernels::kAuto;
    options.cuda.cuda = &cuda();
    options.cuda.tier = tier;
    return options;
  }

  // In a run of one step and one of the others. The results, and the params as
  // they are then.
  absl::StatusOr<Memory> Run(const Step& step, Memory memory, int64_t models,
                             CompileOptions options) {
    ASSIGN_OR_RETURN(const auto types, TypesOf(step, models));
    if (models > 0) options.vectorize = {models, step.inputs};
    ASSIGN_OR_RETURN(const Compiled compiled,
                     Compile(step.graph.Clone(), options));
    Executable& executable = *compiled.executable;
    EXPECT_FALSE(executable.models_innermost());
    lowering_ = executable.lowering();
    notes_ = compiled.cuda->notes;
    for (const auto& [name, type] : types) {
      std::string& bytes = memory[name];
      if (bytes.empty()) bytes.resize(step.steps * type.bytes());
      const bool advances = std::ssize(bytes) != type.bytes();
      CHECK(std::ssize(bytes) == type.bytes() * (advances ? step.steps : 1));
      RETURN_IF_ERROR(executable.Bind(name, bytes.data(),
                                      advances ? type.bytes() : 0,
                                      advances ? step.steps : 0));
    }
    RETURN_IF_ERROR(executable.Run(1));
    if (step.steps > 1) RETURN_IF_ERROR(executable.Run(step.steps - 1));
    RETURN_IF_ERROR(executable.ParamsToHost());
    launches_ = executable.traffic()->launches;
    return memory;
  }

  // Model k's leaves are one's, its own ones scaled a little, and of model 1
  // the learning rate is one that nothing survives. `same`: compares a value.
  template <class Same>
  void ExpectEachAsAlone(const Step& step, int64_t models,
                         const CompileOptions& options, Same same) {
    ASSERT_OK_AND_ASSIGN(const auto types, TypesOf(step, models));
    Memory together;
    std::vector<Memory> each(models, step.leaves);
    for (const auto& [name, bytes] : step.leaves) {
      const TensorType& type = types.at(name);
      if (type.models == 0) {
        together[name] = bytes;
        continue;
      }
      for (int64_t k = 0; k < models; ++k) {
        std::vector<float> values = Floats(bytes);
        for (float& value : values) {
          value *= k == 1 && name == "lr" ? 1e20f : 1 - 0.125f * k;
        }
        each[k][name] = Bytes(values);
      }
      together[name] = Together(each, name, type);
    }
    ASSERT_OK_AND_ASSIGN(got_, Run(step, together, models, options));
    const std::string lowering = lowering_;
    got_launches_ = launches_;
    std::vector<Memory> want(models);
    for (int64_t k = 0; k < models; ++k) {
      ASSERT_OK_AND_ASSIGN(want[k], Run(step, each[k], 0, options));
    }
    for (const auto& [name, type] : types) {
      if (type.models == 0) continue;
      same(Floats(got_.at(name)), Floats(Together(want, name, type)),
           absl::StrCat(name, " of ", models, " models, ", lowering));
    }
  }

  static void SameBits(const std::vector<float>& got,
                       const std::vector<float>& want,
                       const std::string& what) {
    EXPECT_TRUE(
        got.size() == want.size() &&
        std::memcmp(got.data(), want.data(), want.size() * sizeof(float)) == 0)
        << what;
  }

  // Of the last Run.
  std::string lowering_;
  std::vector<std::string> notes_;
  int64_t launches_ = 0;
  // Of the models together.
  Memory got_;
  int64_t got_launches_ = 0;

 private:
  // Values [steps, models, n] of models' [steps, n].
  static std::string Together(const std::vector<Memory>& each,
                              const std::string& name, const TensorType& type) {
    const size_t bytes = type.num_elements() * DTypeBytes(type.dtype);
    std::string all;
    for (size_t at = 0; at < each[0].at(name).size(); at += bytes) {
      for (const Memory& memory : each)
        all += memory.at(name).substr(at, bytes);
    }
    return all;
  }
};

// The trainer's step, with a rate and rows of its own for each step.
Step TrainStep(std::vector<int64_t> widths, int64_t batch,
               const OptimizerSpec& optimizer = {}, int64_t steps = 3) {
  ModelSpec model;
  model.widths = std::move(widths);
  const Dataset data = RandomRows(29, model.features(), model.classes(), 5);
  Step step = {.graph = *BuildTrainStep(model, optimizer, data.rows, batch),
               .leaves = {},
               .inputs = {"lr"},
               .steps = steps};
  for (const std::string& name : HyperInputs(optimizer)) {
    step.inputs.push_back(name);
    step.leaves[name] = Bytes(std::vector<float>{0.5f});
  }
  MlpRandom random(7);
  std::vector<int32_t> indices(step.steps * batch);
  for (int32_t& i : indices) i = static_cast<int32_t>(random.Below(data.rows));
  step.leaves["images"] = Bytes(data.images);
  step.leaves["labels"] = Bytes(data.labels);
  step.leaves["indices"] = Bytes(indices);
  std::vector<float> lrs, numbers;
  for (int64_t i = 1; i <= steps; ++i) {
    lrs.push_back(0.3f / static_cast<float>(1 + i % 3));
    numbers.push_back(static_cast<float>(i));
  }
  step.leaves["lr"] = Bytes(lrs);
  if (optimizer.kind == OptimizerKind::kAdam) {
    step.leaves["step"] = Bytes(numbers);
  }
  for (const auto& node : step.graph.nodes()) {
    if (node->kind != OpKind::kParam) continue;
    std::vector<float> values(node->types[0].num_elements());
    for (float& v : values) v = static_cast<float>(0.3 * random.Uniform());
    if (node->name().find('.') != std::string::npos) {
      for (float& v : values) v = std::abs(v);  // a mean of squares
    }
    step.leaves[node->name()] = Bytes(values);
  }
  return step;
}

// Of values that do not advance.
Step StepOf(const Graph& graph, const TensorMap& bindings,
            std::vector<std::string> inputs, int64_t steps) {
  Step step = {.graph = graph.Clone(),
               .leaves = {},
               .inputs = std::move(inputs),
               .steps = steps};
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf) || node->kind == OpKind::kConstant) continue;
    const std::vector<double>& values = bindings.at(node->name());
    const auto as = [&](auto zero) {
      return Bytes(std::vector<decltype(zero)>(values.begin(), values.end()));
    };
    const DType dtype = node->types[0].dtype;
    step.leaves[node->name()] = dtype == DType::kU8    ? as(uint8_t{})
                                : dtype == DType::kI32 ? as(int32_t{})
                                                       : as(float{});
  }
  return step;
}

// Inputs that may be per model.
std::vector<std::string> OwnInputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) {
    if (node->def().Has(kLeaf)) continue;
    const int operands = static_cast<int>(node->operands.size());
    const auto axes = node->def().rules.batch(operands, node->attrs);
    for (int i = 0; i < operands; ++i) {
      const Node& leaf = *node->operands[i].node;
      if (leaf.kind == OpKind::kInput && axes[i] != ModelAxis::kShared &&
          leaf.types[0].dtype == DType::kF32) {
        names.push_back(leaf.name());
      }
    }
  }
  return names;
}

// Of each op some of its cases.
TEST_F(ModelsCudaTest, EveryOpThatMayBeOfEachModel) {
  std::map<OpKind, int> cases;
  ForEachOpCase([&](const OpCase& c) {
    const std::vector<std::string> inputs = OwnInputs(c.graph);
    if (inputs.empty() || !GetOpDef(c.op).RunsOn(kCuda) ||
        cases[c.op]++ % 13 != 4) {
      return;
    }
    SCOPED_TRACE(c.name);
    ExpectEachAsAlone(StepOf(c.graph, c.bindings, inputs, 1), 2,
                      Options(Dispatch::kOps, false), SameBits);
  });
  EXPECT_GT(cases.size(), 20u);
  for (const auto& [op, n] : cases) EXPECT_GT(n, 4) << GetOpDef(op).name;
}

TEST_F(ModelsCudaTest, RandomStepsOpByOp) {
  MlpRandom random(23);
  for (int i = 0; i < 12; ++i) {
    const RandomMlp mlp = MakeRandomMlp(random);
    const Step step = StepOf(mlp.graph, mlp.bindings, {"lr"}, 2);
    SCOPED_TRACE(absl::StrCat("graph ", i, "\n", PrintGraph(step.graph)));
    const int64_t models = i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 5;
    const Dispatch dispatch = i % 2 == 0 ? Dispatch::kOps : Dispatch::kGraph;
    for (const bool fuse : {false, true}) {
      ExpectEachAsAlone(step, models, Options(dispatch, fuse), SameBits);
    }
    if (HasFailure()) return;
  }
}

TEST_F(ModelsCudaTest, EveryTier) {
  const Step step = TrainStep({20, 12, 5}, 8);
  for (const int64_t models : {1, 2, 5}) {
    for (const Dispatch dispatch : {Dispatch::kOps, Dispatch::kGraph}) {
      for (const CudaTier tier : {CudaTier::kLibrary, CudaTier::kFused}) {
        ExpectEachAsAlone(step, models, Options(dispatch, true, tier),
                          SameBits);
      }
    }
    CompileOptions options =
        Options(Dispatch::kSingle, true, CudaTier::kPersistent);
    ExpectEachAsAlone(step, models, options, SameBits);
    options.cuda.first_layer = CudaFirstLayer::kSplit;
    ExpectEachAsAlone(step, models, options, SameBits);
    const std::vector<float> losses = Floats(got_.at("loss"));
    ASSERT_EQ(std::ssize(losses), step.steps * models);
    for (int64_t k = 0; k < models; ++k) {
      EXPECT_EQ(std::isfinite(losses[(step.steps - 1) * models + k]), k != 1);
    }
  }
}

// They would not all stop at one step: a launch ends by itself.
TEST_F(ModelsCudaTest, APersistentKernelOfManyRunsInSlices) {
  const Step step = TrainStep({16, 4, 2}, 2, {}, /*steps=*/71);
  ExpectEachAsAlone(step, 2,
                    Options(Dispatch::kSingle, true, CudaTier::kPersistent),
                    SameBits);
  EXPECT_EQ(got_launches_, 1 + 2);
}

// Rates, momentum and weight decay that differ.
TEST_F(ModelsCudaTest, OptimizersWithHyperParametersOfTheirOwn) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    const Step step =
        TrainStep({13, 8, 3}, 4, {.kind = kind, .hyper_inputs = true});
    ExpectEachAsAlone(step, 3, Options(Dispatch::kGraph, true), SameBits);
  }
}

// The library's sums of a batch of matmuls may be in another order.
TEST_F(ModelsCudaTest, TheLibrarysMatMulsAreABatch) {
  const auto near = [](const std::vector<float>& got,
                       const std::vector<float>& want,
                       const std::string& what) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      if (!(std::abs(want[i]) < 1e3f)) continue;  // of what has diverged
      ASSERT_NEAR(got[i], want[i], 2e-5 * std::max(1.0f, std::abs(want[i])))
          << what << " at " << i;
    }
  };
  for (const int64_t classes : {12, 10}) {
    const Step step = TrainStep({24, 16, classes}, 8);
    ExpectEachAsAlone(
        step, 5,
        Options(Dispatch::kGraph, true, CudaTier::kLibrary, Kernels::kAuto),
        near);
  }
  ASSERT_OK(
      Run(TrainStep({24, 16, 10}, 8), TrainStep({24, 16, 10}, 8).leaves, 1,
          Options(Dispatch::kGraph, true, CudaTier::kLibrary, Kernels::kAuto)));
  EXPECT_THAT(notes_, Contains(HasSubstr("1x matmul 8x10x16 fp32 bias: our own "
                                         "kernel: ")));
}

TEST_F(ModelsCudaTest, TheLoweringSaysHowMany) {
  const Step step = TrainStep({20, 12, 5}, 8);
  CompileOptions options =
      Options(Dispatch::kSingle, true, CudaTier::kPersistent);
  options.vectorize = {5, step.inputs};
  ASSERT_OK_AND_ASSIGN(const Compiled compiled,
                       Compile(step.graph.Clone(), options));
  EXPECT_THAT(compiled.executable->lowering(), HasSubstr("5 models"));
  // A cluster of two blocks each.
  EXPECT_EQ(compiled.cuda->occupancy.nodes[0].occupancy.blocks, 10);
  EXPECT_THAT(compiled.cuda->nodes, HasSubstr("2x1x5"));
}

}  // namespace
}  // namespace onestep
