// SPDX-License-Identifier: Apache-2.0
// The search's engine on a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

class SearchCudaTest : public CudaTest,
                       public testing::WithParamInterface<Grouping> {};

TEST_P(SearchCudaTest, EachTrialHasTheBitsOfItsRunAlone) {
  const Dataset data = RandomRows(61, 12, 4, /*seed=*/2);
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
  Config config;
  config.model.widths = {12, 8, 4};
  config.optimizer.kind = OptimizerKind::kMomentum;
  config.batch = 8;
  config.epochs = options.epochs;
  config.compile = options.compile;
  const std::vector<double> rates = {0.1, 0.02};
  for (size_t i = 0; i < rates.size(); ++i) {
    EXPECT_OK(engine->Add({static_cast<int64_t>(i), config.model,
                           config.optimizer, rates[i], config.batch, 1}));
  }
  for (int64_t epoch = 1; epoch <= 2; ++epoch) {
    EXPECT_OK(engine->RunEpoch(epoch, [](int64_t, int64_t) { return true; })
                  .status());
  }
  for (size_t i = 0; i < rates.size(); ++i) {
    config.lr = rates[i];
    ASSERT_OK_AND_ASSIGN(const auto loop,
                         TrainLoop::Create(config, data, kTrainRows));
    for (int64_t epoch = 1; epoch <= 2; ++epoch) {
      EXPECT_OK(
          loop->RunEpoch(epoch, [](int64_t, double) { return true; }).status());
    }
    const std::vector<Tensor>& params = engine->Params(static_cast<int64_t>(i));
    for (size_t p = 0; p < params.size(); ++p) {
      EXPECT_EQ(
          std::memcmp(params[p].data.data(), loop->params()[p].data.data(),
                      params[p].data.bytes()),
          0)
          << params[p].name << " of trial " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groupings, SearchCudaTest,
                         testing::Values(Grouping::kLoop, Grouping::kVector));

}  // namespace
}  // namespace onestep
