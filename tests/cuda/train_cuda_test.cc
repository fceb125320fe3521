// SPDX-License-Identifier: Apache-2.0
// Whole train steps on a GPU, every tier and way to launch them, against the
// float64 oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "runtime/base/status.h"
#include "tests/cuda/cuda_device.h"
#include "tests/oracle.h"
#include "tests/status_matchers.h"
#include "trainer/bind.h"
#include "trainer/data/random_rows.h"
#include "trainer/model.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What a run of steps gives.
struct Trained {
  std::vector<double> losses, corrects;
  TensorMap params;
  DeviceTraffic traffic;
};

// A model, rows, and what each step is given.
struct Task {
  ModelSpec model;
  int64_t batch = 0, steps = 0;
  int64_t gap = 0;  // between the bound indices of two steps
  Dataset data;
  std::vector<int32_t> indices;  // [steps,batch]
  std::vector<float> lrs;        // [steps]

  Task(std::vector<int64_t> widths, int64_t batch, int64_t steps,
       Activation activation = Activation::kRelu)
      : batch(batch), steps(steps) {
    model.widths = std::move(widths);
    model.activation = activation;
    data = RandomRows(97, model.features(), model.classes(), /*seed=*/5);
    std::mt19937 random(11);
    indices.resize(steps * batch);
    for (int32_t& i : indices) i = static_cast<int32_t>(random() % data.rows);
    // A schedule that a frozen rate would show in.
    for (int64_t s = 0; s < steps; ++s) lrs.push_back(0.2f / (1 + s % 5));
  }
};

absl::StatusOr<Trained> Reference(const Task& task) {
  ASSIGN_OR_RETURN(const Graph graph,
                   BuildTrainStep(task.model, {}, task.data.rows, task.batch));
  ASSIGN_OR_RETURN(auto tensors, InitParams(task.model, Init::kHe, 3));
  TensorMap x;
  for (const Tensor& tensor : tensors) {
    const float* const values = tensor.data.as<float>();
    x[tensor.name].assign(values, values + tensor.num_elements());
  }
  x["images"].assign(task.data.images.begin(), task.data.images.end());
  x["labels"].assign(task.data.labels.begin(), task.data.labels.end());
  Trained trained;
  for (int64_t s = 0; s < task.steps; ++s) {
    const auto first = task.indices.begin() + s * task.batch;
    x["indices"].assign(first, first + task.batch);
    x["lr"] = {task.lrs[s]};
    ASSIGN_OR_RETURN(TensorMap y, Evaluate(graph, x));
    trained.losses.push_back(y.at("loss")[0]);
    trained.corrects.push_back(y.at("correct")[0]);
    for (const Tensor& tensor : tensors) x[tensor.name] = y.at(tensor.name);
  }
  for (const Tensor& tensor : tensors) {
    trained.params[tensor.name] = x[tensor.name];
  }
  return trained;
}

class TrainCudaTest : public CudaTest {
 protected:
  CompileOptions Options(Dispatch dispatch, bool fuse, CudaTier tier) {
    CompileOptions options;
    options.device = Device::kGpu;
    options.dispatch = dispatch;
    options.fuse = fuse;
    options.cuda.cuda = &cuda();
    options.cuda.tier = tier;
    return options;
  }

  // In runs of 1, then `run` steps, as a progress line would have them.
  absl::StatusOr<Trained> Train(const Task& task, const CompileOptions& options,
                                int64_t run = 7) {
    ASSIGN_OR_RETURN(Graph graph, BuildTrainStep(task.model, {}, task.data.rows,
                                                 task.batch));
    ASSIGN_OR_RETURN(const Compiled compiled,
                     Compile(std::move(graph), options));
    lowering_ = compiled.executable->lowering();
    Executable& executable = *compiled.executable;
    ASSIGN_OR_RETURN(auto params, InitParams(task.model, Init::kHe, 3));
    RETURN_IF_ERROR(BindData(executable, task.data));
    RETURN_IF_ERROR(BindTensors(executable, params));
    const int64_t stride = task.batch + task.gap;
    std::vector<int32_t> indices(task.steps * stride);
    for (int64_t s = 0; s < task.steps; ++s) {
      std::copy_n(task.indices.begin() + s * task.batch, task.batch,
                  indices.begin() + s * stride);
    }
    std::vector<float> lrs = task.lrs, losses(task.steps), corrects(task.steps);
    RETURN_IF_ERROR(
        executable.Bind("indices", indices.data(), stride * sizeof(int32_t)));
    RETURN_IF_ERROR(executable.Bind("lr", lrs.data(), sizeof(float)));
    RETURN_IF_ERROR(executable.Bind("loss", losses.data(), sizeof(float)));
    RETURN_IF_ERROR(executable.Bind("correct", corrects.data(), sizeof(float)));
    for (int64_t done = 0; done < task.steps;) {
      const int64_t n = done == 0 ? 1 : std::min(run, task.steps - done);
      RETURN_IF_ERROR(executable.Run(n));
      done += n;
    }
    RETURN_IF_ERROR(executable.ParamsToHost());
    Trained trained;
    trained.losses.assign(losses.begin(), losses.end());
    trained.corrects.assign(corrects.begin(), corrects.end());
    for (const Tensor& p : params) {
      const float* const values = p.data.as<float>();
      trained.params[p.name].assign(values, values + p.num_elements());
    }
    trained.traffic = *executable.traffic();
    return trained;
  }

  // fp32 against float64: each step's rounding is some 1e-7 of the loss, and
  // twenty steps at these rates carry it on. Weights are of order 0.1.
  void ExpectNear(const Trained& got, const Trained& want, double share) {
    for (size_t s = 0; s < want.losses.size(); ++s) {
      ASSERT_NEAR(got.losses[s], want.losses[s], share * want.losses[s])
          << "step " << s << " of " << lowering_;
    }
    for (const auto& [name, values] : want.params) {
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(got.params.at(name)[i], values[i], share)
            << name << "[" << i << "] of " << lowering_;
      }
    }
  }

  void ExpectSameBits(const Trained& a, const Trained& b) {
    EXPECT_EQ(a.losses, b.losses) << lowering_;
    EXPECT_EQ(a.corrects, b.corrects) << lowering_;
    EXPECT_EQ(a.params, b.params) << lowering_;
  }

  std::string lowering_;
};

constexpr double kFp32 = 2e-5;

// Each tier's ops and graph agree bit by bit, and with the oracle.
TEST_F(TrainCudaTest, EveryTierTrainsMnistsNetAsTheOracleDoes) {
  const Task task({784, 128, 10}, 32, 20);
  ASSERT_OK_AND_ASSIGN(const Trained want, Reference(task));
  const auto check = [&](CompileOptions options) {
    ASSERT_OK_AND_ASSIGN(const Trained got, Train(task, options));
    ExpectNear(got, want, kFp32);
    EXPECT_EQ(got.corrects, want.corrects) << lowering_;
  };
  check(Options(Dispatch::kOps, false, CudaTier::kAuto));
  check(Options(Dispatch::kGraph, false, CudaTier::kAuto));
  check(Options(Dispatch::kGraph, true, CudaTier::kLibrary));
  CompileOptions loops = Options(Dispatch::kGraph, true, CudaTier::kLibrary);
  loops.kernels = Kernels::kLoops;
  check(loops);
  for (const CudaFirstLayer layer :
       {CudaFirstLayer::kFma, CudaFirstLayer::kSplit}) {
    for (const auto& [dispatch, tier] :
         {std::pair{Dispatch::kGraph, CudaTier::kFused},
          std::pair{Dispatch::kSingle, CudaTier::kPersistent}}) {
      CompileOptions options = Options(dispatch, true, tier);
      options.cuda.first_layer = layer;
      check(options);
    }
  }
}

// Long enough that a drift would show; the emulator takes a smaller net.
TEST_F(TrainCudaTest, LossesStayWithTheOraclesForFiveHundredSteps) {
  const Task task(emulated() ? std::vector<int64_t>{24, 8, 3}
                             : std::vector<int64_t>{784, 128, 10},
                  emulated() ? 4 : 32, 500);
  ASSERT_OK_AND_ASSIGN(const Trained want, Reference(task));
  for (const CudaFirstLayer layer :
       {CudaFirstLayer::kFma, CudaFirstLayer::kSplit}) {
    for (const CudaTier tier :
         {CudaTier::kLibrary, CudaTier::kFused, CudaTier::kPersistent}) {
      CompileOptions options = Options(Dispatch::kAuto, true, tier);
      options.cuda.first_layer = layer;
      ASSERT_OK_AND_ASSIGN(const Trained got, Train(task, options, 100));
      double largest = 0;
      for (int64_t s = 0; s < task.steps; ++s) {
        // Of 97 random rows losses go towards 0, where rounding is all.
        const double scale = std::max(want.losses[s], 1e-2);
        largest =
            std::max(largest, std::abs(got.losses[s] - want.losses[s]) / scale);
      }
      std::printf("tier %s, first layer %s: losses within %.1e\n",
                  ToString(tier), ToString(layer), largest);
      // Of the large net fp32 is 1e-4 off on a CPU: units turn on a step later.
      EXPECT_LT(largest, emulated() ? 1e-3 : 5e-3) << lowering_;
    }
  }
}

struct Shape {
  std::vector<int64_t> widths;
  int64_t batch;
  Activation activation;
};

TEST_F(TrainCudaTest, OddShapesToo) {
  for (const Shape& shape :
       {Shape{{13, 8, 3}, 33, Activation::kTanh},
        Shape{{100, 20, 7}, 7, Activation::kSigmoid},
        Shape{{64, 40, 17}, 1, Activation::kRelu},
        Shape{{48, 200, 10}, 16, Activation::kRelu}}) {  // 16 units a block
    const Task task(shape.widths, shape.batch, 20, shape.activation);
    ASSERT_OK_AND_ASSIGN(const Trained want, Reference(task));
    for (const CudaTier tier :
         {CudaTier::kLibrary, CudaTier::kFused, CudaTier::kPersistent}) {
      for (const CudaFirstLayer layer :
           {CudaFirstLayer::kFma, CudaFirstLayer::kSplit}) {
        CompileOptions options = Options(Dispatch::kAuto, true, tier);
        options.cuda.first_layer = layer;
        ASSERT_OK_AND_ASSIGN(const Trained got, Train(task, options));
        ExpectNear(got, want, kFp32);
      }
    }
  }
}

TEST_F(TrainCudaTest, AGraphOfAnyNumberOfStepsHasTheBitsOfTheOps) {
  const Task task({20, 16, 4}, 8, 23);
  const auto same = [&](bool fuse, CudaTier tier) {
    ASSERT_OK_AND_ASSIGN(const Trained ops,
                         Train(task, Options(Dispatch::kOps, fuse, tier)));
    for (const int64_t steps : {1, 3, 8}) {
      CompileOptions options = Options(Dispatch::kGraph, fuse, tier);
      options.cuda.steps_per_launch = steps;
      ASSERT_OK_AND_ASSIGN(const Trained graph, Train(task, options));
      ExpectSameBits(graph, ops);
    }
  };
  same(false, CudaTier::kAuto);
  same(true, CudaTier::kLibrary);
  same(true, CudaTier::kFused);
}

TEST_F(TrainCudaTest, RunsOfAnyLengthHaveTheSameBits) {
  const Task task({20, 16, 4}, 8, 23);
  for (const CudaTier tier :
       {CudaTier::kLibrary, CudaTier::kFused, CudaTier::kPersistent}) {
    const CompileOptions options = Options(Dispatch::kAuto, true, tier);
    ASSERT_OK_AND_ASSIGN(const Trained once, Train(task, options, 22));
    ASSERT_OK_AND_ASSIGN(const Trained often, Train(task, options, 2));
    ExpectSameBits(often, once);
  }
}

TEST_F(TrainCudaTest, RowsThatDoNotFitAreBroughtAsStepsNeedThem) {
  const Task task({784, 16, 4}, 8, 23);
  for (const CudaTier tier :
       {CudaTier::kLibrary, CudaTier::kFused, CudaTier::kPersistent}) {
    CompileOptions options = Options(Dispatch::kAuto, true, tier);
    ASSERT_OK_AND_ASSIGN(const Trained all, Train(task, options));
    EXPECT_EQ(all.traffic.in_steps_bytes, 0) << lowering_;
    // Two steps a chunk: 97 rows are 76 KB.
    options.cuda.table_limit_bytes = 3 * 2 * 8 * (784 + 4) + 100;
    ASSERT_OK_AND_ASSIGN(const Trained some, Train(task, options));
    EXPECT_THAT(lowering_, HasSubstr("rows brought 2 steps at once"));
    ExpectSameBits(some, all);
    EXPECT_EQ(some.traffic.in_steps_bytes, 23 * 8 * (784 + 4)) << lowering_;
  }
}

TEST_F(TrainCudaTest, RowsThatDoNotFitMayBeNumberedWithGaps) {
  Task task({20, 16, 4}, 8, 12);
  CompileOptions options = Options(Dispatch::kAuto, true, CudaTier::kLibrary);
  options.cuda.table_limit_bytes = 2000;
  ASSERT_OK_AND_ASSIGN(const Trained want, Train(task, options));
  task.gap = 3;
  ASSERT_OK_AND_ASSIGN(const Trained got, Train(task, options));
  EXPECT_THAT(lowering_, HasSubstr("rows brought 3 steps at once"));
  ExpectSameBits(got, want);
}

TEST_F(TrainCudaTest, ParamsThatTheCallerChangesAreTakenAnew) {
  const Task task({20, 16, 4}, 8, 2);
  for (const CudaTier tier : {CudaTier::kLibrary, CudaTier::kPersistent}) {
    ASSERT_OK_AND_ASSIGN(
        Graph graph,
        BuildTrainStep(task.model, {}, task.data.rows, task.batch));
    ASSERT_OK_AND_ASSIGN(
        const Compiled compiled,
        Compile(std::move(graph), Options(Dispatch::kAuto, true, tier)));
    Executable& executable = *compiled.executable;
    ASSERT_OK_AND_ASSIGN(auto params, InitParams(task.model, Init::kHe, 3));
    ASSERT_OK_AND_ASSIGN(const auto first,
                         InitParams(task.model, Init::kHe, 3));
    ASSERT_OK(BindData(executable, task.data));
    ASSERT_OK(BindTensors(executable, params));
    std::vector<int32_t> indices = task.indices;
    float lr = 0.1f, losses[3] = {}, correct = 0;
    ASSERT_OK(executable.Bind("indices", indices.data()));
    ASSERT_OK(executable.Bind("lr", &lr));
    ASSERT_OK(executable.Bind("correct", &correct));
    const auto run = [&](float* loss) {
      ASSERT_OK(executable.Bind("loss", loss));
      ASSERT_OK(executable.Run(1));
      ASSERT_OK(executable.ParamsToHost());
    };
    run(&losses[0]);
    run(&losses[1]);
    EXPECT_LT(losses[1], losses[0]);
    for (size_t i = 0; i < params.size(); ++i) {
      std::copy_n(first[i].data.as<float>(), first[i].num_elements(),
                  params[i].data.as<float>());
    }
    executable.ParamsChanged();
    run(&losses[2]);
    EXPECT_EQ(losses[2], losses[0]) << executable.lowering();
    // A rate that is written over without binding it again counts too.
    lr = 0;
    run(&losses[0]);
    run(&losses[1]);
    EXPECT_EQ(losses[1], losses[0]) << executable.lowering();
  }
}

// The others stay as the steps left them, on the device alone.
TEST_F(TrainCudaTest, AParamThatIsBoundAnewIsTheOnlyOneTaken) {
  const Task task({20, 16, 4}, 8, 2);
  const auto second_loss = [&](CudaTier tier,
                               bool bring) -> absl::StatusOr<float> {
    ASSIGN_OR_RETURN(Graph graph, BuildTrainStep(task.model, {}, task.data.rows,
                                                 task.batch));
    ASSIGN_OR_RETURN(
        const Compiled compiled,
        Compile(std::move(graph), Options(Dispatch::kAuto, true, tier)));
    Executable& executable = *compiled.executable;
    ASSIGN_OR_RETURN(auto params, InitParams(task.model, Init::kHe, 3));
    RETURN_IF_ERROR(BindData(executable, task.data));
    RETURN_IF_ERROR(BindTensors(executable, params));
    std::vector<int32_t> indices = task.indices;
    float lr = 0.1f, loss = 0;
    std::vector<float> b2 = {1, -1, 2, 0};
    RETURN_IF_ERROR(executable.Bind("indices", indices.data()));
    RETURN_IF_ERROR(executable.Bind("lr", &lr));
    RETURN_IF_ERROR(executable.Bind("loss", &loss));
    RETURN_IF_ERROR(executable.Run(1));
    if (bring) RETURN_IF_ERROR(executable.ParamsToHost());
    RETURN_IF_ERROR(executable.Bind("b2", b2.data()));
    RETURN_IF_ERROR(executable.ParamsToHost());
    EXPECT_EQ(b2, (std::vector<float>{1, -1, 2, 0}));
    RETURN_IF_ERROR(executable.Run(1));
    return loss;
  };
  for (const CudaTier tier : {CudaTier::kLibrary, CudaTier::kPersistent}) {
    ASSERT_OK_AND_ASSIGN(const float want, second_loss(tier, true));
    ASSERT_OK_AND_ASSIGN(const float got, second_loss(tier, false));
    EXPECT_EQ(got, want) << ToString(tier);
  }
}

// True fp32 is the default, and the others are what they say.
TEST_F(TrainCudaTest, MathIsWhatWasAskedFor) {
  const Task task({784, 16, 4}, 8, 3);
  ASSERT_OK_AND_ASSIGN(const Trained want, Reference(task));
  const auto error = [&](MathMode math) -> absl::StatusOr<double> {
    CompileOptions options =
        Options(Dispatch::kGraph, true, CudaTier::kLibrary);
    options.cuda.math = math;
    ASSIGN_OR_RETURN(const Trained got, Train(task, options));
    EXPECT_THAT(lowering_, HasSubstr(absl::StrCat("math ", ToString(math))));
    return std::abs(got.losses[2] - want.losses[2]) / want.losses[2];
  };
  ASSERT_OK_AND_ASSIGN(const double fp32, error(MathMode::kFp32));
  ASSERT_OK_AND_ASSIGN(const double tf32, error(MathMode::kTf32));
  ASSERT_OK_AND_ASSIGN(const double bf16, error(MathMode::kBf16));
  EXPECT_LT(fp32, 1e-5);  // tf32 rounds to 5e-4
  EXPECT_LT(tf32, 1e-2);
  EXPECT_LT(bf16, 5e-2);
  // An emulated tf32 or bf16 product is never exact here by chance.
  if (emulated()) {
    EXPECT_GT(tf32, fp32);
    EXPECT_GT(bf16, tf32);
  }
  CompileOptions fused = Options(Dispatch::kGraph, true, CudaTier::kFused);
  fused.cuda.math = MathMode::kBf16;
  ASSERT_OK_AND_ASSIGN(const Trained got, Train(task, fused));
  EXPECT_THAT(lowering_, HasSubstr("first layer bf16"));
  ExpectNear(got, want, 5e-2);
}

TEST_F(TrainCudaTest, ATierThatCannotTakeTheStepFallsToTheNextAndSaysWhy) {
  ModelSpec deep;
  deep.widths = {20, 16, 12, 4};
  ASSERT_OK_AND_ASSIGN(Graph graph, BuildTrainStep(deep, {}, 97, 8));
  ASSERT_OK_AND_ASSIGN(const Compiled compiled,
                       Compile(std::move(graph), Options(Dispatch::kAuto, true,
                                                         CudaTier::kAuto)));
  ASSERT_TRUE(compiled.cuda.has_value());
  EXPECT_EQ(compiled.cuda->tier, CudaTier::kLibrary);
  EXPECT_THAT(
      compiled.cuda->notes,
      testing::Contains(HasSubstr("tier persistent: want one hidden layer")));

  ASSERT_OK_AND_ASSIGN(graph, BuildTrainStep(deep, {}, 97, 8));
  EXPECT_THAT(
      Compile(std::move(graph),
              Options(Dispatch::kSingle, true, CudaTier::kAuto))
          .status(),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr("tier persistent: want one hidden layer"),
                     HasSubstr("--dispatch graph"))));
}

TEST_F(TrainCudaTest, ATierOfAnotherDispatchIsRefused) {
  const Task task({20, 16, 4}, 8, 1);
  EXPECT_THAT(
      Train(task, Options(Dispatch::kGraph, true, CudaTier::kPersistent))
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("tier persistent: want dispatch single")));
}

}  // namespace
}  // namespace onestep
