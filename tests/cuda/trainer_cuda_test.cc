// SPDX-License-Identifier: Apache-2.0
// The trainer's parts on a GPU: the loop with its tail batch, evaluation, the
// choice of auto.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "compiler/compiler.h"
#include "runtime/base/status.h"
#include "tests/cuda/cuda_device.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/autotune.h"
#include "trainer/data/random_rows.h"
#include "trainer/evaluate.h"
#include "trainer/launch_costs.h"
#include "trainer/train_loop.h"

namespace onestep {
namespace {

using testing::HasSubstr;

class TrainerCudaTest : public CudaTest {
 protected:
  Config Settings(Device device) {
    Config config;
    config.model.widths = {12, 8, 4};
    config.batch = 8;
    config.epochs = 3;
    config.lr_schedule = ScheduleKind::kCosine;
    config.compile.device = device;
    config.compile.cuda.cuda = &cuda();
    return config;
  }

  // Two epochs; the losses of the rows before and after.
  absl::StatusOr<std::vector<double>> Losses(const Config& config) {
    ASSIGN_OR_RETURN(auto loop, TrainLoop::Create(config, data_, data_.rows));
    ASSIGN_OR_RETURN(auto evaluator,
                     Evaluator::Create(config.model, config.compile, data_,
                                       loop->params(), {0, data_.rows}));
    std::vector<double> losses;
    ASSIGN_OR_RETURN(EvalResult result, evaluator->Run());
    losses.push_back(result.loss);
    for (int64_t epoch = 1; epoch <= 2; ++epoch) {
      ASSIGN_OR_RETURN(
          const EpochResult trained,
          loop->RunEpoch(epoch, [](int64_t, double) { return true; }));
      losses.push_back(trained.loss);
      losses.push_back(trained.train_accuracy);
    }
    ASSIGN_OR_RETURN(result, evaluator->Run());
    losses.push_back(result.loss);
    losses.push_back(result.accuracy);
    return losses;
  }

  const Dataset data_ = RandomRows(61, 12, 4, /*seed=*/2);  // a tail of 5
};

TEST_F(TrainerCudaTest, TheLoopAndItsTailTrainAsOnTheCpu) {
  ASSERT_OK_AND_ASSIGN(const auto cpu, Losses(Settings(Device::kCpu)));
  for (const CudaTier tier :
       {CudaTier::kLibrary, CudaTier::kFused, CudaTier::kPersistent}) {
    Config config = Settings(Device::kGpu);
    config.compile.cuda.tier = tier;
    ASSERT_OK_AND_ASSIGN(const auto gpu, Losses(config));
    ASSERT_EQ(gpu.size(), cpu.size());
    for (size_t i = 0; i < cpu.size(); ++i) {
      EXPECT_NEAR(gpu[i], cpu[i], 1e-5 * std::abs(cpu[i]))
          << i << " of tier " << ToString(tier);
    }
  }
}

TEST_F(TrainerCudaTest, MomentumAndAdamTrainAsOnTheCpu) {
  for (const OptimizerKind kind :
       {OptimizerKind::kMomentum, OptimizerKind::kAdamW}) {
    Config config = Settings(Device::kCpu);
    config.optimizer.kind = kind;
    config.lr = 0.01;
    ASSERT_OK_AND_ASSIGN(const auto cpu, Losses(config));
    config.compile = Settings(Device::kGpu).compile;
    ASSERT_OK_AND_ASSIGN(const auto gpu, Losses(config));
    // Adam divides by the gradient's size: of a small one all roundings count.
    for (size_t i = 0; i < cpu.size(); ++i) {
      EXPECT_NEAR(gpu[i], cpu[i], 1e-4 * std::abs(cpu[i]));
    }
  }
}

TEST_F(TrainerCudaTest, ADivergingRunEndsWithTheWeightsBeforeIt) {
  Config config = Settings(Device::kGpu);
  config.compile.cuda.tier = CudaTier::kFused;
  config.lr = 1e30;
  config.lr_schedule = ScheduleKind::kConstant;
  ASSERT_OK_AND_ASSIGN(auto loop, TrainLoop::Create(config, data_, data_.rows));
  const absl::Status status =
      loop->RunEpoch(1, [](int64_t, double) { return true; }).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("diverged")));
  for (const Tensor& param : loop->params()) {
    for (int64_t i = 0; i < param.num_elements(); ++i) {
      ASSERT_TRUE(std::isfinite(param.data.as<float>()[i])) << param.name;
    }
  }
}

TEST_F(TrainerCudaTest, AutoTimesWhatTheFlagsLeaveOpenAndKeepsIt) {
  const TempFolder folder;
  setenv("ONESTEP_CACHE", folder.path().c_str(), 1);
  Config config = Settings(Device::kGpu);
  const auto quiet = [] { return CoreWaits(); };  // nothing else runs
  ASSERT_OK_AND_ASSIGN(const AutoChoice choice,
                       SettleAuto(config, data_, quiet));
  // Tier library, and the other two with two first layers each.
  EXPECT_EQ(choice.candidates.size() + choice.refused.size(), 5u);
  EXPECT_NE(config.compile.dispatch, Dispatch::kAuto);
  EXPECT_NE(config.compile.cuda.tier, CudaTier::kAuto);
  EXPECT_EQ(config.input, InputMode::kDense);
  EXPECT_THAT(FlagsOf(choice.candidates[0]), HasSubstr("--tier "));

  Config again = Settings(Device::kGpu);
  ASSERT_OK_AND_ASSIGN(const AutoChoice kept, SettleAuto(again, data_, quiet));
  EXPECT_TRUE(kept.cached);
  EXPECT_EQ(again.compile.cuda.tier, config.compile.cuda.tier);

  Config fixed = Settings(Device::kGpu);
  fixed.compile.dispatch = Dispatch::kGraph;
  fixed.compile.cuda.tier = CudaTier::kLibrary;
  ASSERT_OK_AND_ASSIGN(const AutoChoice none, SettleAuto(fixed, data_));
  EXPECT_FALSE(none.cached);
  unsetenv("ONESTEP_CACHE");

  Config sparse = Settings(Device::kGpu);
  sparse.input = InputMode::kSparse;
  EXPECT_THAT(SettleAuto(sparse, data_).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("sparse")));
}

// A dear launch makes long graphs, a dear node short ones.
TEST_F(TrainerCudaTest, AKeptProbeDecidesHowLongAGraphIs) {
  const TempFolder folder;
  setenv("ONESTEP_CACHE", folder.path().c_str(), 1);
  ASSERT_OK_AND_ASSIGN(const CudaDevice device, cuda().Device());
  CudaProbe probe;
  probe.device = device;
  const auto lowering = [&](double node_ns, double launch_ns) {
    KeepProbe(probe, {{"rows",
                       {{{"name", "graph node, chain of 64"},
                         {"value", node_ns},
                         {"doubt", ""}},
                        {{"name", "CPU time of a graph launch, chain of 64"},
                         {"value", launch_ns},
                         {"doubt", ""}}}}});
    Config config = Settings(Device::kGpu);
    config.compile.cuda.tier = CudaTier::kFused;
    config.compile.dispatch = Dispatch::kGraph;
    UseKeptProbe(config.compile.cuda);
    auto loop = TrainLoop::Create(config, data_, data_.rows);
    EXPECT_OK(loop);
    return loop.ok() ? (*loop)->step().executable->lowering() : "";
  };
  // 2 % of 3 nodes a step: 2500 / (0.02 * 3 * 1000) steps.
  EXPECT_THAT(lowering(1000, 2500), HasSubstr("one graph replay per 42 steps"));
  EXPECT_THAT(lowering(50000, 2500), HasSubstr("one graph replay per 1 step,"));
  unsetenv("ONESTEP_CACHE");
}

}  // namespace
}  // namespace onestep
