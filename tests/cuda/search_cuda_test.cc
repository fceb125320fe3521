// SPDX-License-Identifier: Apache-2.0
// The search's engine on a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/cuda/cuda_device.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/evaluate.h"
#include "trainer/search/bundle_engine.h"
#include "trainer/train_loop.h"

namespace onestep {
namespace {

using testing::HasSubstr;
using testing::Not;

class SearchCudaTest : public CudaTest,
                       public testing::WithParamInterface<Grouping> {};

TEST_P(SearchCudaTest, EachTrialHasTheBitsOfItsRunAlone) {
  const Dataset data = RandomRows(61, 12, 10, /*seed=*/2);
  constexpr int64_t kTrainRows = 45;  // five whole batches and a tail
  EngineOptions options;
  options.compile.device = Device::kGpu;
  options.compile.cuda.cuda = &cuda();
  options.workers = 2;  // of no use here
  options.grouping = GetParam();
  options.epochs = 2;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<TrialEngine> engine,
      CreateBundleEngine(options, data, kTrainRows, data.rows));
  std::vector<Trial> trials;
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum}) {
    for (const double lr : {0.1, 0.02}) {
      Trial trial;
      trial.index = std::ssize(trials);
      trial.model.widths = {12, 8, 10};
      trial.optimizer.kind = kind;
      trial.lr = lr;
      trial.batch = 8;
      trials.push_back(trial);
      EXPECT_OK(engine->Add(trial));
    }
  }
  // A momentum trial beside the others, but of a kind of its own.
  trials.push_back(trials.back());
  trials.back().index = 4;
  trials.back().model.widths = {12, 10};
  EXPECT_OK(engine->Add(trials.back()));
  for (int64_t epoch = 1; epoch <= 2; ++epoch) {
    EXPECT_OK(engine->RunEpoch(epoch, [](int64_t, int64_t) { return true; })
                  .status());
  }
  for (const GroupReport& group : engine->Groups()) {
    EXPECT_THAT(group.lowering, Not(HasSubstr("matmuls by"))) << group.kind;
  }
  for (const Trial& trial : trials) {
    Config config;
    config.model = trial.model;
    config.optimizer = trial.optimizer;
    config.lr = trial.lr;
    config.batch = trial.batch;
    config.epochs = options.epochs;
    config.compile = options.compile;
    config.compile.kernels = Kernels::kLoops;
    ASSERT_OK_AND_ASSIGN(const auto loop,
                         TrainLoop::Create(config, data, kTrainRows));
    for (int64_t epoch = 1; epoch <= 2; ++epoch) {
      EXPECT_OK(
          loop->RunEpoch(epoch, [](int64_t, double) { return true; }).status());
    }
    const std::vector<Tensor>& params = engine->Params(trial.index);
    for (size_t p = 0; p < params.size(); ++p) {
      EXPECT_EQ(
          std::memcmp(params[p].data.data(), loop->params()[p].data.data(),
                      params[p].data.bytes()),
          0)
          << params[p].name << " of trial " << trial.index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groupings, SearchCudaTest,
                         testing::Values(Grouping::kLoop, Grouping::kVector));

}  // namespace
}  // namespace onestep
