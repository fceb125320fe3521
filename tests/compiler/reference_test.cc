// SPDX-License-Identifier: Apache-2.0
// The reference loops against numbers worked out by hand.
#include "kernels/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace onestep::reference {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

using Tensor = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Sums of a few float64 values of size 1.
constexpr double kRounding = 1e-15;

double NllOf(const Tensor& logits, double label) {
  return NllLoss(logits.data(), &label, 1, std::ssize(logits), 1);
}

Tensor SoftmaxOf(const Tensor& logits) {
  Tensor p(logits.size());
  Softmax(logits.data(), p.data(), 1, std::ssize(logits));
  return p;
}

TEST(ReferenceLossTest, TwoEqualHugeLogitsLoseLogTwo) {
  EXPECT_NEAR(NllOf({1e8, 1e8}, 0), 0.69314718055994531, kRounding);
  EXPECT_THAT(SoftmaxOf({1e8, 1e8}), ElementsAre(0.5, 0.5));
}

TEST(ReferenceLossTest, AFarWrongLogitLosesItsDistance) {
  EXPECT_DOUBLE_EQ(NllOf({1e4, 0}, 1), 10000);
  EXPECT_DOUBLE_EQ(NllOf({-431, 279, 427}, 0), 858);
}

TEST(ReferenceLossTest, AFarWrongLogitHasAUnitGradient) {
  const double label = 0;
  Tensor p = SoftmaxOf({-431, 279, 427});
  MinusOneHot(p.data(), &label, p.data(), 1, 3);
  // exp(279 - 427) = 5e-65 remains in the middle.
  EXPECT_THAT(p, Pointwise(DoubleNear(1e-60), {-1.0, 0.0, 1.0}));
}

TEST(ReferenceLossTest, TenEqualLogitsLoseLogTen) {
  EXPECT_NEAR(NllOf(Tensor(10, 0.0), 7), 2.3025850929940457, kRounding);
}

TEST(ReferenceLossTest, NllIsTheMeanOverRows) {
  const Tensor logits = {0, 0, 1e4, 0}, labels = {0, 1};
  EXPECT_DOUBLE_EQ(NllLoss(logits.data(), labels.data(), 2, 2, 2),
                   (std::log(2) + 1e4) / 2);
  EXPECT_DOUBLE_EQ(NllLoss(logits.data(), labels.data(), 2, 2, 8),
                   (std::log(2) + 1e4) / 8);
}

TEST(ReferenceLossTest, SoftmaxGradRemovesTheMeanOfDy) {
  const Tensor y = {0.5, 0.25, 0.25}, dy = {2, 4, 0};  // dot is 2
  Tensor dx(3);
  SoftmaxGrad(y.data(), dy.data(), dx.data(), 1, 3);
  EXPECT_THAT(dx, ElementsAre(0, 0.5, -0.5));
}

TEST(ReferenceLossTest, MseIsTheMeanOverAllElements) {
  const Tensor y = {1, 2, 3, 4}, t = {1, 0, 3, 0};
  EXPECT_EQ(MseLoss(y.data(), t.data(), 4, 4), 5);
  EXPECT_EQ(MseLoss(y.data(), t.data(), 4, 40), 0.5);
  Tensor dy(4);
  MseGrad(y.data(), t.data(), dy.data(), 4, 4);
  EXPECT_THAT(dy, ElementsAre(0, 1, 0, 2));
  MseGrad(y.data(), t.data(), dy.data(), 4, 8);
  EXPECT_THAT(dy, ElementsAre(0, 0.5, 0, 1));
}

TEST(ReferenceCountCorrectTest, TheFirstOfEqualLargestIsTheGuess) {
  const Tensor logits = {3, 7, 7, 3, 7, 7}, labels = {1, 2};
  EXPECT_EQ(CountCorrect(logits.data(), labels.data(), 2, 3), 1);
}

TEST(ReferenceCountCorrectTest, ARowThatIsNotFiniteIsWrong) {
  const Tensor logits = {kInf, 0, kNan, 0, 1, -kInf, 1, 0};
  const Tensor labels = {0, 0, 0, 0};
  EXPECT_EQ(CountCorrect(logits.data(), labels.data(), 4, 2), 1);
}

TEST(ReferenceRowsTest, GatherRowsCopiesTheRowsOfItsIndices) {
  const Tensor table = {0, 1, 10, 11, 20, 21}, indices = {2, 0, 2};
  Tensor y(6);
  GatherRows(table.data(), indices.data(), y.data(), 3, 2);
  EXPECT_THAT(y, ElementsAre(20, 21, 0, 1, 20, 21));
}

TEST(ReferenceRowsTest, ScatterAddAddsRowsThatAreNamedTwiceTwice) {
  const Tensor table = {0, 1, 10, 11, 20, 21}, indices = {2, 0, 2};
  const Tensor x = {1, 2, 3, 4, 5, 6};
  Tensor y(6);
  ScatterAdd(table.data(), indices.data(), x.data(), y.data(), 3, 3, 2);
  EXPECT_THAT(y, ElementsAre(3, 5, 10, 11, 26, 29));
}

// softplus(0) is log 2 and sigmoid(0) a half.
TEST(ReferenceLossTest, SigmoidBceWeighsEachPairAndTakesLabelsOrPositives) {
  const Tensor z(4), mask = {1, 2}, w = {1, 0}, labels = {0.25, 1};
  SigmoidBceArgs args = {z.data(), mask.data(), w.data(), nullptr, 2, 2, 1, 1};
  Tensor dz(4);
  EXPECT_DOUBLE_EQ(SigmoidBce(args), 3 * std::log(2.0));
  SigmoidBceGrad(args, dz.data());
  EXPECT_THAT(dz, ElementsAre(-0.5, 0, -1, 0));
  args.labels = labels.data();
  SigmoidBceGrad(args, dz.data());
  EXPECT_THAT(dz, ElementsAre(0.25, 0, 0.5, 0));
  args.blocks = 2;
  const Tensor w2 = {1, 0, 0, 3}, labels2 = {0, 0, 0, 1};
  args.weights = w2.data();
  args.labels = labels2.data();
  SigmoidBceGrad(args, dz.data());
  EXPECT_THAT(dz, ElementsAre(0.5, 0, 0, -3));
}

TEST(ReferenceLossTest, SigmoidBceIsFiniteForLargeLogits) {
  const Tensor z = {1000, -1000}, one = {1, 1};
  const SigmoidBceArgs args = {z.data(), one.data(), one.data(), nullptr,
                               1,        2,          1,          0};
  EXPECT_EQ(SigmoidBce(args), 1000);
}

// Context row 1 twice, each time with the old rows: d is -1/2 where the label
// is 1, so that lr 2 adds the output row once for each naming.
TEST(ReferenceWindowTest, ARowThatIsNamedTwiceGetsBothAdditions) {
  const Tensor in = {0, 0, 0, 0}, out = {3, 5}, w = {1}, mask = {1, 1};
  const Tensor contexts = {1, 1}, outputs = {0};
  WindowArgs args = {};
  args.in = in.data();
  args.out = out.data();
  args.contexts = contexts.data();
  args.outputs = outputs.data();
  args.mask = mask.data();
  args.weights = w.data();
  args.lr = 2;
  args.in_rows = 2;
  args.out_rows = 1;
  args.cols = 2;
  args.num_contexts = 2;
  args.num_outputs = args.positives = 1;
  Tensor new_in(4), new_out(2);
  EXPECT_DOUBLE_EQ(Window(args, new_in.data(), new_out.data()),
                   2 * std::log(2.0));
  EXPECT_THAT(new_in, ElementsAre(0, 0, 6, 10));
  EXPECT_THAT(new_out, ElementsAre(3, 5));

  const Tensor mean = {0.5, 0.5}, spread = {1, 0};
  args.mask = nullptr;
  args.mean = mean.data();
  args.spread = spread.data();
  Window(args, new_in.data(), new_out.data());
  EXPECT_THAT(new_in, ElementsAre(0, 0, 3, 5));
}

TEST(ReferenceRowsTest, OneHotMarksTheLabel) {
  const Tensor labels = {2, 0};
  Tensor y(6, -1);
  OneHot(labels.data(), y.data(), 2, 3);
  EXPECT_THAT(y, ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(ReferenceRowsTest, AddBiasReduceAndBroadcastWorkOverColumns) {
  const Tensor x = {1, 2, 3, 4, 5, 6}, b = {10, 20, 30};
  Tensor y(6), sums(3);
  AddBias(x.data(), b.data(), y.data(), 2, 3);
  EXPECT_THAT(y, ElementsAre(11, 22, 33, 14, 25, 36));
  ReduceRows(x.data(), sums.data(), 2, 3);
  EXPECT_THAT(sums, ElementsAre(5, 7, 9));
  BroadcastRows(b.data(), y.data(), 2, 3);
  EXPECT_THAT(y, ElementsAre(10, 20, 30, 10, 20, 30));
}

TEST(ReferenceElementwiseTest, ScaleAddAndMulWorkElementByElement) {
  const Tensor a = {1, -2}, b = {3, 5};
  Tensor y(2);
  Scale(a.data(), 0.5, y.data(), 2);
  EXPECT_THAT(y, ElementsAre(0.5, -1));
  Add(a.data(), b.data(), y.data(), 2);
  EXPECT_THAT(y, ElementsAre(4, 3));
  Mul(a.data(), b.data(), y.data(), 2);
  EXPECT_THAT(y, ElementsAre(3, -10));
}

// a = [1 2 3; 4 5 6], b = [1 0; 2 1; 0 3].
TEST(ReferenceMatMulTest, AllFourTranspositionsGiveTheSameProduct) {
  const Tensor a = {1, 2, 3, 4, 5, 6}, at = {1, 4, 2, 5, 3, 6};
  const Tensor b = {1, 0, 2, 1, 0, 3}, bt = {1, 2, 0, 0, 1, 3};
  for (bool trans_a : {false, true}) {
    for (bool trans_b : {false, true}) {
      Tensor c(4);
      MatMul(trans_a ? at.data() : a.data(), trans_b ? bt.data() : b.data(),
             c.data(), 2, 2, 3, trans_a, trans_b);
      EXPECT_THAT(c, ElementsAre(5, 11, 14, 23)) << trans_a << trans_b;
    }
  }
}

TEST(ReferenceActivationTest, HasTheKnownValuesAtOne) {
  const double x = 1;
  double y = 0;
  Activate(Activation::kRelu, &x, &y, 1);
  EXPECT_EQ(y, 1);
  Activate(Activation::kTanh, &x, &y, 1);
  EXPECT_NEAR(y, 0.76159415595576489, kRounding);
  Activate(Activation::kSigmoid, &x, &y, 1);
  EXPECT_NEAR(y, 0.73105857863000487, kRounding);
  Activate(Activation::kGelu, &x, &y, 1);
  EXPECT_NEAR(y, 0.84134474606854293, kRounding);
}

TEST(ReferenceActivationTest, StaysFiniteFarOut) {
  const Tensor x = {-1e4, 1e4};
  Tensor y(2);
  Activate(Activation::kSigmoid, x.data(), y.data(), 2);
  EXPECT_THAT(y, ElementsAre(0, 1));
  Activate(Activation::kTanh, x.data(), y.data(), 2);
  EXPECT_THAT(y, ElementsAre(-1, 1));
  Activate(Activation::kGelu, x.data(), y.data(), 2);
  EXPECT_THAT(y, ElementsAre(0, 1e4));
}

TEST(ReferenceActivationTest, GeluKeepsItsLeftTail) {
  const double x = -10;
  double y = 0;
  Activate(Activation::kGelu, &x, &y, 1);
  EXPECT_NEAR(y, -7.6198530241605e-23, 1e-35);
}

TEST(ReferenceActivationTest, ReluPassesNanOnAndHasNoSlopeAtZero) {
  double y = 0;
  Activate(Activation::kRelu, &kNan, &y, 1);
  EXPECT_TRUE(std::isnan(y));
  const double zero = 0, dy = 1;
  double dx = -1;
  ActivateGrad(Activation::kRelu, &zero, &dy, &dx, 1);
  EXPECT_EQ(dx, 0);
}

// w' and the new states of a step from {w, states} with lr 0.1.
Tensor UpdateOf(UpdateRule rule, Tensor values, double dw,
                const std::vector<double>& hyper, bool flag = false,
                double step = 1) {
  UpdateArgs args = {};
  args.w = args.w_out = &values[0];
  args.dw = &dw;
  for (size_t i = 1; i < values.size(); ++i) {
    args.state[i - 1] = args.state_out[i - 1] = &values[i];
  }
  args.lr = 0.1;
  args.step = step;
  std::copy(hyper.begin(), hyper.end(), args.hyper);
  args.flag = flag;
  args.n = 1;
  Update(rule, args);
  return values;
}

double SgdOf(double weight_decay) {
  return UpdateOf(UpdateRule::kSgd, {1}, 0.5, {weight_decay})[0];
}

TEST(ReferenceUpdateTest, SgdStepsAgainstTheGradientAndItsDecay) {
  EXPECT_NEAR(SgdOf(0), 0.95, kRounding);
  EXPECT_NEAR(SgdOf(0.1), 0.94, kRounding);  // g = 0.5 + 0.1 * 1
}

// w', v' of one step from w = 1, dw = 0.5, v = 0.2.
Tensor MomentumOf(bool nesterov, double weight_decay) {
  return UpdateOf(UpdateRule::kMomentum, {1, 0.2}, 0.5, {0.9, weight_decay},
                  nesterov);
}

TEST(ReferenceUpdateTest, MomentumTakesTheHandComputedStep) {
  EXPECT_THAT(MomentumOf(false, 0),
              Pointwise(DoubleNear(kRounding), {0.932, 0.68}));
  EXPECT_THAT(MomentumOf(false, 0.1),  // g = 0.6
              Pointwise(DoubleNear(kRounding), {0.922, 0.78}));
}

TEST(ReferenceUpdateTest, NesterovLooksAhead) {
  EXPECT_THAT(MomentumOf(true, 0),  // 1 - 0.1 (0.5 + 0.9 * 0.68)
              Pointwise(DoubleNear(kRounding), {0.8888, 0.68}));
}

// w', m', v' of a step from {w, m, v}.
Tensor AdamOf(const Tensor& values, double dw, double step, double epsilon,
              double weight_decay, bool decoupled) {
  return UpdateOf(UpdateRule::kAdam, values, dw,
                  {0.9, 0.999, epsilon, weight_decay}, decoupled, step);
}

TEST(ReferenceUpdateTest, AdamTakesTwoHandComputedSteps) {
  // mhat = 0.5, vhat = 0.25: a whole lr.
  const Tensor first = AdamOf({1, 0, 0}, 0.5, 1, 0, 0, false);
  EXPECT_THAT(first, Pointwise(DoubleNear(1e-14), {0.9, 0.05, 0.00025}));
  // mhat = 0.02 / 0.19, vhat = 0.00031225 / 0.001999. 1 - 0.999^t loses three
  // digits.
  EXPECT_THAT(
      AdamOf({0.9, 0.05, 0.00025}, -0.25, 2, 0, 0, false),
      Pointwise(DoubleNear(1e-13), {0.8733662960339598, 0.02, 0.00031225}));
}

TEST(ReferenceUpdateTest, AdamAddsEpsilonOutsideTheRoot) {
  // 1 - 0.1 * 0.5 / (0.5 + 0.5)
  EXPECT_NEAR(AdamOf({1, 0, 0}, 0.5, 1, 0.5, 0, false)[0], 0.95, 1e-14);
}

TEST(ReferenceUpdateTest, AdamDecaysThroughTheGradient) {
  // g = 0.6: m' = 0.06, v' = 0.00036; the step is still a whole lr.
  EXPECT_THAT(AdamOf({1, 0, 0}, 0.5, 1, 0, 0.1, false),
              Pointwise(DoubleNear(1e-14), {0.9, 0.06, 0.00036}));
}

TEST(ReferenceUpdateTest, AdamWDecaysTheWeightItself) {
  // 1 - 0.1 * 0.1 * 1 - 0.1; the moments see the plain gradient.
  EXPECT_THAT(AdamOf({1, 0, 0}, 0.5, 1, 0, 0.1, true),
              Pointwise(DoubleNear(1e-14), {0.89, 0.05, 0.00025}));
}

}  // namespace
}  // namespace onestep::reference
