// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/step_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"

namespace onestep {
namespace {

const ModelSpec kModel = {{20, 16, 4}, Activation::kRelu, Loss::kSoftmaxXent};

std::unique_ptr<StepSession> Create(const Dataset& data,
                                    OptimizerKind optimizer, bool fuse) {
  CompileOptions options;
  options.fuse = fuse;
  OptimizerSpec spec;
  spec.kind = optimizer;
  auto session = StepSession::Create(kModel, spec, options, data, /*batch=*/8);
  EXPECT_OK(session);
  return *std::move(session);
}

std::vector<float> Losses(StepSession& session, float lr, int steps) {
  EXPECT_OK(session.Reset(lr));
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    EXPECT_OK(session.Run(1));
    losses.push_back(session.loss());
  }
  return losses;
}

TEST(RandomRowsTest, AboutFourFifthsOfThePixelsAreZero) {
  const Dataset data = RandomRows(200, 500, 10, /*seed=*/1);
  const double zeros =
      std::count(data.images.begin(), data.images.end(), 0) / 100000.0;
  EXPECT_NEAR(zeros, 0.8, 0.01);  // 8 standard deviations
  EXPECT_GE(*std::min_element(data.labels.begin(), data.labels.end()), 0);
  EXPECT_LT(*std::max_element(data.labels.begin(), data.labels.end()), 10);
}

TEST(StepSessionTest, ResetRepeatsTheSameLosses) {
  const Dataset data = RandomRows(64, 20, 4, /*seed=*/1);
  for (const OptimizerKind optimizer :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    const auto session = Create(data, optimizer, /*fuse=*/true);
    const std::vector<float> first = Losses(*session, 0.1f, 20);
    EXPECT_EQ(first, Losses(*session, 0.1f, 20));
  }
}

TEST(StepSessionTest, FusedAndUnfusedHaveTheSameLosses) {
  const Dataset data = RandomRows(64, 20, 4, /*seed=*/1);
  const std::vector<float> fused =
      Losses(*Create(data, OptimizerKind::kSgd, /*fuse=*/true), 0.1f, 20);
  const std::vector<float> unfused =
      Losses(*Create(data, OptimizerKind::kSgd, /*fuse=*/false), 0.1f, 20);
  // Sums of at most 20 terms in other orders.
  EXPECT_THAT(fused, testing::Pointwise(testing::FloatNear(1e-5f), unfused));
}

TEST(StepSessionTest, TheRateIsReadAtRunTime) {
  const Dataset data = RandomRows(64, 20, 4, /*seed=*/1);
  const auto session = Create(data, OptimizerKind::kSgd, /*fuse=*/true);
  // 64 rows are 8 steps: the first step's rows come again 8 steps later.
  const std::vector<float> still = Losses(*session, 0, 9);
  EXPECT_EQ(still[8], still[0]);
  const std::vector<float> moving = Losses(*session, 0.5f, 9);
  EXPECT_EQ(moving[0], still[0]);
  EXPECT_NE(moving[8], moving[0]);
}

TEST(StepSessionTest, ManyStepsGoOnEpochAfterEpoch) {
  const Dataset data = RandomRows(70, 20, 4, /*seed=*/1);  // 8 steps, 6 rows
  const auto session = Create(data, OptimizerKind::kAdam, /*fuse=*/true);
  const std::vector<float> one_by_one = Losses(*session, 0.01f, 30);
  ASSERT_OK(session->Reset(0.01f));
  ASSERT_OK(session->Run(30));
  EXPECT_EQ(session->loss(), one_by_one[29]);
  EXPECT_TRUE(std::isfinite(session->loss()));
}

TEST(StepSessionTest, TextbookFlopsAreThoseOfTheArticle) {
  const ModelSpec model = {{784, 128, 10}};
  EXPECT_EQ(TextbookFlops(model, 1), 2 * (2 * 784 * 128 + 3 * 128 * 10));
  EXPECT_EQ(TextbookFlops(model, 32), 32 * TextbookFlops(model, 1));
}

}  // namespace
}  // namespace onestep
