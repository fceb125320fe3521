// SPDX-License-Identifier: Apache-2.0
#include "trainer/train_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/oracle.h"
#include "tests/status_matchers.h"
#include "trainer/data/random.h"
#include "trainer/data/split.h"
#include "trainer/evaluate.h"
#include "trainer/finite.h"

namespace onestep {
namespace {

using testing::HasSubstr;

Dataset SmallData(int64_t rows) {
  Dataset data;
  data.rows = rows;
  data.image_rows = 2;
  data.image_cols = 3;
  data.features = 6;
  data.classes = 3;
  Random random(5);
  for (int64_t row = 0; row < rows; ++row) {
    data.labels.push_back(static_cast<int32_t>(random.Below(3)));
    for (int64_t i = 0; i < data.features; ++i) {
      data.images.push_back(static_cast<uint8_t>(random.Below(256)));
    }
  }
  return data;
}

Config SmallConfig() {
  Config config;
  config.model.widths = {6, 5, 3};
  config.batch = 4;
  config.epochs = 3;
  config.lr = 0.5;
  return config;
}

std::vector<double> Values(const Tensor& tensor) {
  const float* const values = tensor.data.as<float>();
  return {values, values + tensor.num_elements()};
}

bool Continue(int64_t, double) { return true; }

// Two epochs of 4, 4 and 2 rows, each step in float64 by the oracle.
void ExpectLikeOracle(const Config& config) {
  const Dataset data = SmallData(12);
  constexpr int64_t kRows = 10;  // the last two are not trained on
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TrainLoop> loop,
                       TrainLoop::Create(config, data, kRows));
  TensorMap values;
  values["images"] = {data.images.begin(), data.images.end()};
  values["labels"] = {data.labels.begin(), data.labels.end()};
  for (const Tensor& param : loop->params()) {
    values[param.name] = Values(param);
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> states,
                       InitOptimizerState(config.model, config.optimizer));
  for (const Tensor& state : states) values[state.name] = Values(state);

  int64_t step = 0;
  for (int64_t epoch = 1; epoch <= 2; ++epoch) {
    const std::vector<int32_t> order =
        EpochOrder(kRows, config.shuffle_seed.value_or(config.seed), epoch - 1);
    double loss = 0, correct = 0;
    for (int64_t row = 0; row < kRows;) {
      const int64_t batch = std::min(config.batch, kRows - row);
      ASSERT_OK_AND_ASSIGN(
          const Graph graph,
          BuildTrainStep(config.model, config.optimizer, data.rows, batch));
      values["indices"] = {order.begin() + row, order.begin() + row + batch};
      values["lr"] = {LearningRate(
          {config.lr_schedule, config.lr, config.warmup, 9}, step)};
      values["step"] = {static_cast<double>(++step)};
      ASSERT_OK_AND_ASSIGN(const TensorMap results, Evaluate(graph, values));
      for (const auto& [name, value] : results) {
        if (values.contains(name)) values[name] = value;
      }
      loss += results.at("loss")[0] * static_cast<double>(batch);
      correct += results.at("correct")[0];
      row += batch;
    }
    ASSERT_OK_AND_ASSIGN(const EpochResult result,
                         loop->RunEpoch(epoch, Continue));
    EXPECT_NEAR(result.loss, loss / kRows, 1e-5);
    EXPECT_EQ(result.train_accuracy, correct / kRows);
  }
  EXPECT_EQ(loop->steps_per_epoch(), 3);
  EXPECT_EQ(loop->tail_batch(), 2);
  EXPECT_EQ(loop->steps_done(), 6);
  // float32 against float64, six steps of values near 1.
  for (const Tensor& param : loop->params()) {
    EXPECT_THAT(Values(param), testing::Pointwise(testing::DoubleNear(1e-4),
                                                  values.at(param.name)))
        << param.name;
  }
}

TEST(TrainLoopTest, WholeBatchesAndTailAreTheTextbookSteps) {
  for (const bool fuse : {true, false}) {
    Config config = SmallConfig();
    config.compile.fuse = fuse;
    ExpectLikeOracle(config);
  }
}

TEST(TrainLoopTest, OneDispatchOfAnyTeamIsTheTextbookSteps) {
  for (const int threads : {1, 2, 3}) {
    for (const OptimizerKind optimizer :
         {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
      Config config = SmallConfig();
      config.compile.dispatch = Dispatch::kSingle;
      config.compile.threads = threads;
      config.optimizer.kind = optimizer;
      if (optimizer == OptimizerKind::kAdam) config.lr = 0.01;
      ExpectLikeOracle(config);
    }
  }
}

TEST(TrainLoopTest, AShuffleSeedOrdersTheRowsAndDrawsNoWeights) {
  Config config = SmallConfig();
  config.shuffle_seed = 7;
  ExpectLikeOracle(config);
  const Dataset data = SmallData(12);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TrainLoop> loop,
                       TrainLoop::Create(config, data, 10));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> params,
                       InitParams(config.model, config.init, config.seed));
  EXPECT_EQ(Values(loop->params()[0]), Values(params[0]));
}

TEST(TrainLoopTest, TheStepsLearningRateFollowsTheSchedule) {
  Config config = SmallConfig();
  config.lr_schedule = ScheduleKind::kCosine;
  config.warmup = 2;
  ExpectLikeOracle(config);
}

TEST(TrainLoopTest, StateAndStepNumberOfAdamGoOnAcrossEpochs) {
  Config config = SmallConfig();
  config.optimizer.kind = OptimizerKind::kAdamW;
  config.optimizer.weight_decay = 0.1f;
  config.lr = 0.01;
  ExpectLikeOracle(config);
  config.optimizer.kind = OptimizerKind::kMomentum;
  config.optimizer.nesterov = true;
  ExpectLikeOracle(config);
}

TEST(TrainLoopTest, APollThatSaysNoEndsTheEpochBetweenSteps) {
  const Dataset data = SmallData(100);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TrainLoop> loop,
                       TrainLoop::Create(SmallConfig(), data, 100));
  int64_t done = -1;
  const auto stop_later = [&done](int64_t steps, double) {
    done = steps;
    return steps == 0;
  };
  EXPECT_THAT(loop->RunEpoch(1, stop_later),
              StatusIs(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_GT(done, 0);
  EXPECT_EQ(loop->steps_done(), done);
}

TEST(TrainLoopTest, DivergenceKeepsTheFiniteWeightsBeforeIt) {
  const Dataset data = SmallData(40);
  Config config = SmallConfig();
  config.model.loss = Loss::kMse;
  config.lr = 1e6;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TrainLoop> loop,
                       TrainLoop::Create(config, data, 40));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> initial,
                       InitParams(config.model, config.init, config.seed));
  absl::Status status;
  for (int64_t epoch = 1; epoch <= 3 && status.ok(); ++epoch) {
    status = loop->RunEpoch(epoch, Continue).status();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange,
                               HasSubstr("epoch 1, step ")));
  EXPECT_GT(loop->steps_done(), 0);
  for (size_t i = 0; i < initial.size(); ++i) {
    const Tensor& param = loop->params()[i];
    EXPECT_TRUE(AllFinite(param.data.as<float>(), param.num_elements()))
        << param.name;
  }
  // Not the weights it began with: the steps that went well are kept.
  EXPECT_NE(std::memcmp(loop->params()[0].data.data(), initial[0].data.data(),
                        initial[0].data.bytes()),
            0);
}

TEST(TrainLoopTest, AnInfiniteLearningRateLeavesTheFirstWeights) {
  const Dataset data = SmallData(40);
  Config config = SmallConfig();
  config.lr = std::numeric_limits<double>::infinity();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TrainLoop> loop,
                       TrainLoop::Create(config, data, 40));
  EXPECT_THAT(loop->RunEpoch(1, Continue),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("step ")));
  EXPECT_EQ(loop->steps_done(), 0);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> initial,
                       InitParams(config.model, config.init, config.seed));
  for (size_t i = 0; i < initial.size(); ++i) {
    EXPECT_EQ(Values(loop->params()[i]), Values(initial[i]));
  }
}

TEST(TrainLoopTest, AllFiniteSeesEveryElement) {
  std::vector<float> values(100, 3e38f);
  EXPECT_TRUE(AllFinite(values.data(), 100));
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (const int i : {0, 50, 99}) {
      std::vector<float> with_bad = values;
      with_bad[i] = bad;
      EXPECT_FALSE(AllFinite(with_bad.data(), 100)) << bad << " at " << i;
    }
  }
}

// 2,500 rows are two chunks and a tail; 3 rows are a tail only.
TEST(EvaluatorTest, ChunksAndTailAreTheRowsOfTheRange) {
  const Dataset data = SmallData(2600);
  Config config = SmallConfig();
  ASSERT_OK_AND_ASSIGN(std::vector<Tensor> params,
                       InitParams(config.model, Init::kHe, 1));
  TensorMap values;
  values["images"] = {data.images.begin(), data.images.end()};
  values["labels"] = {data.labels.begin(), data.labels.end()};
  for (const Tensor& param : params) values[param.name] = Values(param);
  for (const int64_t rows : {2500, 3}) {
    constexpr int64_t kBegin = 77;
    for (int64_t row = 0; row < rows; ++row) {
      values["indices"].push_back(static_cast<double>(kBegin + row));
    }
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         BuildEvalStep(config.model, data.rows, rows));
    ASSERT_OK_AND_ASSIGN(const TensorMap want, Evaluate(graph, values));
    values["indices"].clear();
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Evaluator> evaluator,
        Evaluator::Create(config.model, config.compile, data, params,
                          {kBegin, rows, /*keep_probabilities=*/true}));
    ASSERT_OK_AND_ASSIGN(const EvalResult got, evaluator->Run());
    EXPECT_EQ(got.rows, rows);
    EXPECT_NEAR(got.loss, want.at("loss")[0], 1e-5);
    EXPECT_EQ(got.accuracy, want.at("correct")[0] / static_cast<double>(rows));
    EXPECT_THAT(evaluator->probabilities(),
                testing::Pointwise(testing::FloatNear(1e-5f),
                                   want.at("probabilities")));
  }
}

TEST(EvaluatorTest, TheFirstLargestIsPredictedAndNothingOfARowNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> rows = {
      {0.2f, 0.4f, 0.4f}, {0.4f, 0.3f, 0.3f}, {0.1f, nan, 0.9f}};
  EXPECT_EQ(PredictedClass(rows[0].data(), 3), 1);
  EXPECT_EQ(PredictedClass(rows[1].data(), 3), 0);
  EXPECT_EQ(PredictedClass(rows[2].data(), 3), -1);
}

}  // namespace
}  // namespace onestep
