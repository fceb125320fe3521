// SPDX-License-Identifier: Apache-2.0
// The three tiers of the hidden-split step against a float64 network, on the
// emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/hidden_split/hidden_split.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/kernels/hidden_split_net.h"
#include "tests/status_matchers.h"

namespace onestep::cuda {
namespace {

using testing::Each;
using testing::HasSubstr;

// The largest difference.
float Distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float here = std::abs(a[i] - b[i]);
    if (!(here <= distance)) distance = here;  // NaN stays
  }
  return distance;
}

void ExpectNear(const Results& got, const Results& want, float loss_tolerance,
                float weight_tolerance) {
  for (size_t s = 0; s < want.loss.size(); ++s) {
    EXPECT_NEAR(got.loss[s], want.loss[s], loss_tolerance * want.loss[s])
        << "step " << s;
  }
  EXPECT_LE(Distance(got.weights.w1, want.weights.w1), weight_tolerance);
  EXPECT_LE(Distance(got.weights.b1, want.weights.b1), weight_tolerance);
  EXPECT_LE(Distance(got.weights.w2, want.weights.w2), weight_tolerance);
  EXPECT_LE(Distance(got.weights.b2, want.weights.b2), weight_tolerance);
}

// Weights are below 1 and each step rounds them once, to 2^-25 of that; what
// the gradients add is as small.
constexpr float kLossTolerance = 1e-5f, kWeightTolerance = 2e-6f;

constexpr HiddenSplitShape kMnist = {
    .batch = 32, .features = 784, .hidden = 128, .classes = 10};

constexpr HiddenSplitShape kSmall = {
    .batch = 20, .features = 48, .hidden = 20, .classes = 5};

const char* NameOf(CudaTier tier) {
  return tier == CudaTier::kPersistent ? "Persistent" : "Fused";
}

std::string Describe(CudaTier tier, const HiddenSplitShape& shape) {
  return std::string(NameOf(tier)) + " " + std::to_string(shape.features) +
         "-" + std::to_string(shape.hidden) + "-" +
         std::to_string(shape.classes) + " batch " +
         std::to_string(shape.batch) + " first layer " +
         std::to_string(static_cast<int>(shape.first_layer));
}

// Trains for all of the problem's steps with fp32 products.
void ExpectTrains(CudaTier tier, CudaFirstLayer first_layer, Problem& problem,
                  const Results& want) {
  problem.shape.first_layer = first_layer;
  SCOPED_TRACE(Describe(tier, problem.shape));
  Trainer trainer(tier, problem);
  EXPECT_OK(trainer.Run(problem.steps));
  ExpectNear(trainer.results(), want, kLossTolerance, kWeightTolerance);
  EXPECT_EQ(trainer.results().correct, want.correct);
}

// Model m of `models` has the bits of the one that is alone.
void ExpectSameModel(const Results& all, int m, int models,
                     const Results& alone) {
  const auto same = [](const float* got, const std::vector<float>& want) {
    return std::memcmp(got, want.data(), want.size() * sizeof(float)) == 0;
  };
  for (size_t s = 0; s < alone.loss.size(); ++s) {
    EXPECT_TRUE(same(&all.loss[s * models + m], {alone.loss[s]})) << s;
    EXPECT_EQ(all.correct[s * models + m], alone.correct[s]) << "step " << s;
  }
  for (const auto part :
       {&Weights::w1, &Weights::b1, &Weights::w2, &Weights::b2}) {
    const std::vector<float>& want = alone.weights.*part;
    ASSERT_EQ((all.weights.*part).size(), models * want.size());
    EXPECT_TRUE(same((all.weights.*part).data() + m * want.size(), want));
  }
}

class HiddenSplitTierTest : public testing::TestWithParam<CudaTier> {};
INSTANTIATE_TEST_SUITE_P(Tiers, HiddenSplitTierTest,
                         testing::Values(CudaTier::kFused,
                                         CudaTier::kPersistent),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(HiddenSplitTierTest, TrainsByFmas) {
  HiddenSplitShape shape = kMnist;
  shape.hidden = 32;
  Problem problem = MakeProblem(shape);
  ExpectTrains(GetParam(), CudaFirstLayer::kFma, problem,
               Reference(problem).Run());
}

TEST_P(HiddenSplitTierTest, TrainsMnistOnTensorCores) {
  Problem problem = MakeProblem(kMnist);
  ExpectTrains(GetParam(), CudaFirstLayer::kSplit, problem,
               Reference(problem).Run());
}

TEST_P(HiddenSplitTierTest, TrainsOddShapes) {
  // Rows and features that fill no tile, unaligned rows, blocks with fewer
  // columns or none, two tiles of columns, more rows than one pass takes.
  constexpr HiddenSplitShape kShapes[] = {
      {.batch = 1, .features = 13, .hidden = 8, .classes = 2},
      {.batch = 7, .features = 100, .hidden = 20, .classes = 17},
      {.batch = 33, .features = 48, .hidden = 36, .classes = 10},
      {.batch = 64, .features = 31, .hidden = 6, .classes = 32},
      {.batch = 16, .features = 160, .hidden = 130, .classes = 1},
      {.batch = 70, .features = 1, .hidden = 9, .classes = 3}};
  for (const HiddenSplitShape& shape : kShapes) {
    Problem problem = MakeProblem(shape, 10);
    const Results want = Reference(problem).Run();
    ExpectTrains(GetParam(), CudaFirstLayer::kFma, problem, want);
    ExpectTrains(GetParam(), CudaFirstLayer::kSplit, problem, want);
  }
}

TEST_P(HiddenSplitTierTest, HasEveryActivation) {
  for (const Activation act : {Activation::kNone, Activation::kRelu,
                               Activation::kTanh, Activation::kSigmoid}) {
    SCOPED_TRACE(static_cast<int>(act));
    Problem problem = MakeProblem(kSmall);
    problem.shape.act = act;
    ExpectTrains(GetParam(), CudaFirstLayer::kSplit, problem,
                 Reference(problem).Run());
  }
}

TEST_P(HiddenSplitTierTest, OnePartIsAsExactAsBf16) {
  Problem problem = MakeProblem(kSmall);
  problem.shape.first_layer = CudaFirstLayer::kBf16;
  Trainer trainer(GetParam(), problem);
  ASSERT_OK(trainer.Run(problem.steps));
  const Results want = Reference(problem).Run();
  // A weight is rounded to 2^-9 of itself, a product of the gradient as well.
  ExpectNear(trainer.results(), want, 1e-2f, 1e-3f);
  EXPECT_GT(Distance(trainer.results().weights.w1, want.weights.w1),
            10 * kWeightTolerance);
}

// Of one step: where w2 begins at 0 it becomes h^T d, and where w1 does, x^T e,
// of which two parts have errors of 1e-6 and 5e-6 of the largest.
TEST_P(HiddenSplitTierTest, ThreePartsAreAsExactAsFp32) {
  for (const auto zeros : {&Weights::w1, &Weights::w2}) {
    Problem problem = MakeProblem(kSmall, 1);
    problem.shape.act = Activation::kNone;
    problem.shape.first_layer = CudaFirstLayer::kSplit;
    std::vector<float>& values = problem.weights.*zeros;
    std::fill(values.begin(), values.end(), 0.0f);
    const Results want = Reference(problem).Run();
    Trainer trainer(GetParam(), problem);
    ASSERT_OK(trainer.Run(1));
    EXPECT_LE(Distance(trainer.results().weights.*zeros, want.weights.*zeros),
              5e-7f * Distance(want.weights.*zeros, values));
  }
}

TEST_P(HiddenSplitTierTest, RepeatsBitByBit) {
  for (const CudaFirstLayer first_layer :
       {CudaFirstLayer::kFma, CudaFirstLayer::kSplit}) {
    Problem problem = MakeProblem(kSmall, 5);
    problem.shape.first_layer = first_layer;
    Trainer one(GetParam(), problem);
    ASSERT_OK(one.Run(problem.steps));
    for (uint64_t seed = 2; seed < 7; ++seed) {
      Trainer other(GetParam(), problem);
      other.seed = seed;
      ASSERT_OK(other.Run(problem.steps));
      EXPECT_EQ(other.results(), one.results()) << "seed " << seed;
    }
  }
}

// Chains of launches, or launches, of any length.
TEST_P(HiddenSplitTierTest, RunsInPartsBitByBit) {
  const Problem problem = MakeProblem(kSmall, 10);
  Trainer whole(GetParam(), problem);
  ASSERT_OK(whole.Run(10));
  Trainer parts(GetParam(), problem);
  for (const int64_t steps : {1, 2, 7}) ASSERT_OK(parts.Run(steps));
  EXPECT_EQ(parts.results(), whole.results());
}

// Three networks of one batch, of which one diverges.
TEST_P(HiddenSplitTierTest, ModelsHaveTheBitsThatEachHasAlone) {
  constexpr int kModels = 3, kModelSteps = 5;
  for (const CudaFirstLayer first_layer :
       {CudaFirstLayer::kFma, CudaFirstLayer::kSplit}) {
    Problem all = MakeProblem(kSmall, kModelSteps);
    all.shape.first_layer = first_layer;
    std::vector<Problem> each(kModels, all);
    all.shape.models = kModels;
    all.lr.clear();
    all.weights = {};
    for (int m = 0; m < kModels; ++m) {
      for (float& lr : each[m].lr) lr *= m == 1 ? 1e20f : 1 + 0.1f * m;
      for (const auto part :
           {&Weights::w1, &Weights::b1, &Weights::w2, &Weights::b2}) {
        std::vector<float>& of_model = each[m].weights.*part;
        for (float& weight : of_model) weight *= 1 + 0.1f * m;
        (all.weights.*part)
            .insert((all.weights.*part).end(), of_model.begin(),
                    of_model.end());
      }
    }
    for (int s = 0; s < kModelSteps; ++s) {
      for (const Problem& problem : each) all.lr.push_back(problem.lr[s]);
    }
    Trainer together(GetParam(), all);
    ASSERT_OK(together.Run(2));
    ASSERT_OK(together.Run(kModelSteps - 2));
    for (int m = 0; m < kModels; ++m) {
      Trainer alone(GetParam(), each[m]);
      ASSERT_OK(alone.Run(kModelSteps));
      ExpectSameModel(together.results(), m, kModels, alone.results());
      EXPECT_EQ(std::isfinite(alone.results().loss.back()), m != 1);
    }
  }
}

TEST_P(HiddenSplitTierTest, WeightsOfAllSignsAndSizesKeepTheirBits) {
  Problem problem = MakeProblem(kSmall, 3);
  std::fill(problem.lr.begin(), problem.lr.end(), 0.0f);
  for (size_t i = 0; i < problem.weights.w1.size(); ++i) {
    problem.weights.w1[i] *= std::exp2(static_cast<float>(i % 40) - 35);
  }
  Trainer trainer(GetParam(), problem);
  ASSERT_OK(trainer.Run(problem.steps));
  EXPECT_EQ(trainer.results().weights, problem.weights);
}

TEST_P(HiddenSplitTierTest, NullLossAndCorrectAreNotWritten) {
  const Problem problem = MakeProblem(kSmall, 3);
  Trainer both(GetParam(), problem);
  ASSERT_OK(both.Run(problem.steps));
  Trainer neither(GetParam(), problem);
  neither.buffers().loss = nullptr;
  neither.buffers().correct = nullptr;
  ASSERT_OK(neither.Run(problem.steps));
  EXPECT_EQ(neither.results().weights, both.results().weights);
  EXPECT_THAT(neither.results().loss, Each(-1));
}

TEST_P(HiddenSplitTierTest, EqualHugeLogitsHaveTheLossOfTwoClasses) {
  Problem problem =
      MakeProblem({.batch = 4, .features = 16, .hidden = 8, .classes = 2}, 1);
  std::fill(problem.weights.w1.begin(), problem.weights.w1.end(), 0.0f);
  std::fill(problem.weights.b1.begin(), problem.weights.b1.end(), 0.0f);
  problem.weights.b2 = {1e8f, 1e8f};
  Trainer trainer(GetParam(), problem);
  ASSERT_OK(trainer.Run(1));
  EXPECT_FLOAT_EQ(trainer.results().loss[0], 0.69314718f);
  // Of equals the first is the answer.
  int first = 0;
  for (const int32_t index : problem.indices) {
    first += problem.labels[index] == 0;
  }
  EXPECT_EQ(trainer.results().correct[0], first);
}

TEST_P(HiddenSplitTierTest, ValuesThatAreNotFiniteReachTheLoss) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const CudaFirstLayer first_layer :
       {CudaFirstLayer::kFma, CudaFirstLayer::kSplit}) {
    for (const float value : {kInfinity, -kInfinity, kNan}) {
      for (const auto weights :
           {&Weights::w1, &Weights::b1, &Weights::w2, &Weights::b2}) {
        // -inf before a relu is a 0, and as a logit a probability of 0.
        if (value < 0 && weights != &Weights::w2) continue;
        Problem problem = MakeProblem(kSmall, 2);
        problem.shape.act = Activation::kNone;
        problem.shape.first_layer = first_layer;
        std::fill(problem.images.begin(), problem.images.end(), 1);
        (problem.weights.*weights)[1] = value;
        Trainer trainer(GetParam(), problem);
        ASSERT_OK(trainer.Run(problem.steps));
        for (int s = 0; s < problem.steps; ++s) {
          EXPECT_FALSE(std::isfinite(trainer.results().loss[s]));
          EXPECT_EQ(trainer.results().correct[s], 0);
        }
      }
    }
  }
}

// ---- tier fused
// ----------------------------------------------------------------------
TEST(HiddenSplitFusedTest, TakesABatchOfManyTiles) {
  Problem problem = MakeProblem(
      {.batch = 530, .features = 300, .hidden = 24, .classes = 10}, 3);
  const Results want = Reference(problem).Run();
  ExpectTrains(CudaTier::kFused, CudaFirstLayer::kFma, problem, want);
  ExpectTrains(CudaTier::kFused, CudaFirstLayer::kSplit, problem, want);
}

// ---- tier persistent
// ----------------------------------------------------------------------
TEST(HiddenSplitPersistentTest, TrainsInAClusterOf8) {
  HiddenSplitShape shape = kMnist;
  shape.features = 80;
  Problem problem = MakeProblem(shape);
  const Results want = Reference(problem).Run();
  for (const CudaFirstLayer first_layer :
       {CudaFirstLayer::kFma, CudaFirstLayer::kSplit}) {
    problem.shape.first_layer = first_layer;
    Trainer trainer(CudaTier::kPersistent, problem, {.max_cluster = 8});
    EXPECT_EQ(trainer.plan().blocks, 8);
    ASSERT_OK(trainer.Run(problem.steps));
    ExpectNear(trainer.results(), want, kLossTolerance, kWeightTolerance);
    EXPECT_EQ(trainer.results().correct, want.correct);
  }
}

// Steps that a launch of 20 does, its stop flag being at `stop`.
int StepsDone(const Problem& problem, Trainer& trainer, const uint32_t* stop) {
  trainer.stop = stop;
  EXPECT_OK(trainer.Run(problem.steps));
  const int done = static_cast<int>(trainer.progress);
  const Results& results = trainer.results();
  for (int s = 0; s < problem.steps; ++s) {
    EXPECT_EQ(results.loss[s] != -1, s < done) << "step " << s;
  }
  Trainer exact(CudaTier::kPersistent, problem);
  EXPECT_OK(exact.Run(done));
  EXPECT_EQ(results.weights, exact.results().weights);
  return done;
}

TEST(HiddenSplitPersistentTest, StopsAfterTheFirstStep) {
  const Problem problem = MakeProblem(kSmall);
  Trainer trainer(CudaTier::kPersistent, problem);
  const uint32_t stop = 1;
  EXPECT_EQ(StepsDone(problem, trainer, &stop), 1);
}

// A flag that the kernel itself sets: it is looked at after 8 more steps.
TEST(HiddenSplitPersistentTest, AllBlocksStopAtTheSameStep) {
  Problem problem = MakeProblem(kSmall);
  for (uint64_t seed = 1; seed < 5; ++seed) {
    std::vector<float> correct(problem.steps, 0);
    Trainer trainer(CudaTier::kPersistent, problem);
    trainer.seed = seed;
    trainer.buffers().correct = correct.data();
    trainer.buffers().correct_stride = 0;
    EXPECT_EQ(StepsDone(problem, trainer,
                        reinterpret_cast<const uint32_t*>(correct.data())),
              10);
  }
}

TEST(HiddenSplitPersistentTest, StopsWhereTheBytesAreNotLoadedInBulk) {
  const Problem problem =
      MakeProblem({.batch = 5, .features = 20, .hidden = 16, .classes = 3});
  Trainer trainer(CudaTier::kPersistent, problem);
  const uint32_t stop = 1;
  EXPECT_EQ(StepsDone(problem, trainer, &stop), 1);
}

TEST(HiddenSplitPersistentTest, RunsWithoutSignals) {
  const Problem problem = MakeProblem(kSmall, 3);
  Trainer with(CudaTier::kPersistent, problem);
  ASSERT_OK(with.Run(problem.steps));
  Trainer without(CudaTier::kPersistent, problem);
  ASSERT_OK(Emulate(
      HiddenSplitPersistent(without.plan(), without.buffers(), 0, problem.steps,
                            {nullptr, nullptr, /*timeout_ns=*/1000000}),
      1));
  EXPECT_EQ(without.results(), with.results());
  EXPECT_EQ(with.progress, 3);
}

// The launch lacks the threads that load the last rows.
TEST(HiddenSplitPersistentTest, TrapsWhereAWaitTakesTooLong) {
  HiddenSplitShape shape = kSmall;
  shape.batch = 40;
  const Problem problem = MakeProblem(shape, 1);
  Trainer trainer(CudaTier::kPersistent, problem);
  const uint32_t never = 0;
  uint32_t progress = 0;
  Launch launch =
      HiddenSplitPersistent(trainer.plan(), trainer.buffers(), 0, 1,
                            {&never, &progress, /*timeout_ns=*/1000000});
  launch.block.x = 32;
  EXPECT_THAT(Emulate(launch, 1),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("Trap")));
}

TEST(HiddenSplitLaunchTest, IsNamedAsTheCompilerNamesIt) {
  Problem problem = MakeProblem(kSmall, 1);
  problem.shape.first_layer = CudaFirstLayer::kSplit;
  Trainer fused(CudaTier::kFused, problem);
  Trainer persistent(CudaTier::kPersistent, problem);
  EXPECT_STREQ(HiddenSplitForward(fused.plan(), fused.buffers(), 0).name,
               "HiddenSplitForwardKernel<3>");
  EXPECT_STREQ(HiddenSplitLoss(fused.plan(), fused.buffers(), 0).name,
               "HiddenSplitLossKernel");
  EXPECT_STREQ(HiddenSplitBackward(fused.plan(), fused.buffers(), 0).name,
               "HiddenSplitBackwardKernel<3>");
  EXPECT_STREQ(
      HiddenSplitPersistent(persistent.plan(), persistent.buffers(), 0, 1, {})
          .name,
      "HiddenSplitPersistentKernel<1,3>");
}

// ---- plans
// -------------------------------------------------------------------
std::string Refusal(CudaTier tier, const HiddenSplitShape& shape,
                    const DeviceLimits& limits = {}) {
  return PlanHiddenSplit(tier, shape, limits).refusal;
}

TEST(PlanHiddenSplitTest, TakesMnist) {
  for (const CudaTier tier : {CudaTier::kFused, CudaTier::kPersistent}) {
    const HiddenSplitPlan plan = PlanHiddenSplit(tier, kMnist, {});
    EXPECT_EQ(plan.refusal, "");
    EXPECT_EQ(plan.blocks, 16);
    EXPECT_EQ(plan.workspace_bytes == 0, tier == CudaTier::kPersistent);
  }
}

TEST(PlanHiddenSplitTest, RefusesInPlainWords) {
  HiddenSplitShape shape = kMnist;
  shape.classes = 40;
  EXPECT_EQ(Refusal(CudaTier::kPersistent, shape),
            "classes 40, want at most 32");
  shape = kMnist;
  shape.act = Activation::kGelu;
  EXPECT_EQ(Refusal(CudaTier::kFused, shape),
            "gelu has no gradient from its result alone");
  shape = kMnist;
  shape.batch = 0;
  EXPECT_EQ(Refusal(CudaTier::kFused, shape), "want sizes of at least 1");
  shape = kMnist;
  shape.hidden = 300;
  EXPECT_EQ(Refusal(CudaTier::kPersistent, shape),
            "hidden 300, want at most 256 in a cluster of 16");
  EXPECT_EQ(Refusal(CudaTier::kPersistent, kMnist, {.max_cluster = 1}),
            "the device has no clusters of blocks");
}

TEST(PlanHiddenSplitTest, RefusesWhatSharedMemoryCannotHold) {
  HiddenSplitShape shape = kMnist;
  shape.batch = 512;
  EXPECT_EQ(Refusal(CudaTier::kFused, shape), "");
  EXPECT_THAT(Refusal(CudaTier::kPersistent, shape),
              HasSubstr("bytes of shared memory a block, the device has "
                        "232448"));
  shape.features = 1 << 20;
  shape.batch = 1 << 20;
  shape.hidden = 1 << 20;
  EXPECT_THAT(Refusal(CudaTier::kFused, shape), HasSubstr("of shared memory"));
  shape.hidden += 1;
  EXPECT_THAT(Refusal(CudaTier::kFused, shape),
              HasSubstr("hidden 1048577, want"));
}

}  // namespace
}  // namespace onestep::cuda
