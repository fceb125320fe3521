// SPDX-License-Identifier: Apache-2.0
// Every model gets the bits of the kernel for one model: those kernels are
// tested against float64.
#include <array>
#include <bit>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/rows.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

using CpuInterleavedTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuInterleavedTest);

// Around the lanes and the columns that share a vector.
constexpr int64_t kModels[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 40};

// The values of model k.
Floats Of(const Floats& x, int64_t models, int64_t k) {
  Floats y(x.size() / models);
  TakeModel(x.data(), models, k, y.data(), y.size());
  return y;
}

// Random n values of each model.
Floats Draw(int64_t n, int64_t models, uint32_t seed) {
  return RandomFloats(n * models, -1, 1, seed);
}

void ExpectBits(const Floats& got, int64_t models, int64_t k,
                const Floats& want) {
  ASSERT_EQ(got.size(), want.size() * models);
  for (int64_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i * models + k]),
              std::bit_cast<uint32_t>(want[i]))
        << "model " << k << " of " << models << ", element " << i << ": want "
        << want[i] << ", got " << got[i * models + k];
  }
}

struct MatMulCase {
  int64_t m, n, k, models;
  bool trans_a = false, trans_b = false, accumulate = false, bias = false;
  Activation act = Activation::kNone;
};

Floats SoloMatMul(const MatMulCase& t, const Floats& a, const Floats& b,
                  const Floats& bias, Floats c) {
  Floats packed(b.size());
  if (t.trans_b) Transpose(b.data(), packed.data(), t.n, t.k);
  const MatMulArgs args = {.a = a.data(),
                           .a_row = t.trans_a ? 1 : t.k,
                           .a_col = t.trans_a ? t.m : 1,
                           .b = t.trans_b ? packed.data() : b.data(),
                           .ldb = t.n,
                           .c = c.data(),
                           .ldc = t.n,
                           .m = t.m,
                           .n = t.n,
                           .k = t.k,
                           .bias = t.bias ? bias.data() : nullptr,
                           .accumulate = t.accumulate,
                           .act = t.act};
  MatMul(args, 0, t.m);
  return c;
}

void ExpectMatMulBits(const MatMulCase& t) {
  SCOPED_TRACE(testing::Message()
               << t.m << " x " << t.n << " x " << t.k << " of " << t.models
               << (t.trans_a ? " trans_a" : "") << (t.trans_b ? " trans_b" : "")
               << " act " << static_cast<int>(t.act));
  const Floats a = Draw(t.m * t.k, t.models, 1);
  const Floats b = Draw(t.k * t.n, t.models, 2);
  const Floats bias = Draw(t.n, t.models, 3),
               old = Draw(t.m * t.n, t.models, 4);
  Floats c = old, packed(b.size());
  const bool packs = t.trans_b && ModelsShareVector(t.models);
  if (packs) {
    InterleavedTranspose(b.data(), packed.data(), t.n, t.k, t.models);
  }
  const bool strided = t.trans_b && !packs;
  const InterleavedMatMulArgs args = {.a = a.data(),
                                      .a_row = t.trans_a ? 1 : t.k,
                                      .a_col = t.trans_a ? t.m : 1,
                                      .b = packs ? packed.data() : b.data(),
                                      .b_row = strided ? 1 : t.n,
                                      .b_col = strided ? t.k : 1,
                                      .c = c.data(),
                                      .m = t.m,
                                      .n = t.n,
                                      .k = t.k,
                                      .models = t.models,
                                      .bias = t.bias ? bias.data() : nullptr,
                                      .accumulate = t.accumulate,
                                      .act = t.act};
  const int64_t split = t.m / 3;  // in two ranges
  InterleavedMatMul(args, 0, split);
  InterleavedMatMul(args, split, t.m);
  for (int64_t k = 0; k < t.models; ++k) {
    ASSERT_NO_FATAL_FAILURE(
        ExpectBits(c, t.models, k,
                   SoloMatMul(t, Of(a, t.models, k), Of(b, t.models, k),
                              Of(bias, t.models, k), Of(old, t.models, k))));
  }
}

TEST_P(CpuInterleavedTest, MatMulGivesEveryModelItsOwnBits) {
  int64_t next = 0;
  for (const int64_t models : kModels) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                  {1, 10, 33},
                                  {8, 4, 16},
                                  {7, 1, 9},
                                  {13, 11, 3},
                                  {5, 17, 129}}) {
      MatMulCase t = {m, n, k, models};
      ++next;
      t.trans_a = next % 2 == 0;
      t.trans_b = next % 3 == 0;
      t.accumulate = next % 5 == 0;
      t.bias = !t.accumulate && next % 2 == 1;
      if (!t.accumulate) t.act = static_cast<Activation>(next % 5);
      ASSERT_NO_FATAL_FAILURE(ExpectMatMulBits(t));
    }
  }
}

TEST_P(CpuInterleavedTest, MatMulSumsInTheBlocksOfOneModel) {
  for (const bool trans_a : {false, true}) {
    for (const int64_t m : {1, 2}) {
      ASSERT_NO_FATAL_FAILURE(ExpectMatMulBits(
          {m, 3, 1100, 5, trans_a, false, false, true, Activation::kTanh}));
    }
  }
}

TEST_P(CpuInterleavedTest, XentGradGivesEveryModelItsOwnBits) {
  for (const int64_t models : kModels) {
    for (const int64_t cols : {1, 4, 10, 32}) {
      for (const int64_t rows : {1, 7, 40}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << cols);
        Floats z = RandomFloats(rows * cols * models, -9, 9, 1);
        const Floats logits = z, alpha = Draw(1, models, 2);
        const Ints labels = RandomInts(99, static_cast<int32_t>(cols), 3);
        const Ints indices = RandomInts(rows, 99, 4);
        Floats loss(models), correct(models), db = Draw(cols, models, 5);
        const Floats bias = db;
        InterleavedXentGradArgs args = {};
        args.logits = args.dlogits = z.data();
        args.labels = labels.data();
        args.indices = rows % 2 == 0 ? nullptr : indices.data();
        args.alpha = alpha.data();
        args.loss_alpha = 0.125f;
        args.loss = loss.data();
        args.correct = correct.data();
        args.db = db.data();
        const bool update = rows > 1;
        args.bias = update ? db.data() : nullptr;
        args.rows = rows;
        args.cols = cols;
        args.models = models;
        const int64_t split = models / 16 * 16;
        InterleavedXentGrad(args, 0, split);
        InterleavedXentGrad(args, split, models);
        for (int64_t k = 0; k < models; ++k) {
          Floats want = Of(logits, models, k), row_loss(rows), row_right(rows);
          SoftmaxXentGradRows(want.data(), args.labels, args.indices, alpha[k],
                              want.data(), row_loss.data(), row_right.data(),
                              cols, 0, rows);
          ASSERT_NO_FATAL_FAILURE(ExpectBits(z, models, k, want));
          ASSERT_EQ(loss[k], SumRows(row_loss.data(), 0.125f, rows));
          ASSERT_EQ(correct[k], SumRows(row_right.data(), 1, rows));
          Floats want_db = Of(bias, models, k);
          ReduceRows(want.data(), want_db.data(), update, rows, cols, 0, cols);
          ASSERT_NO_FATAL_FAILURE(ExpectBits(db, models, k, want_db));
        }
      }
    }
  }
}

TEST_P(CpuInterleavedTest, ALogitThatIsNotFiniteSpoilsItsOwnModelAlone) {
  Floats z = {1, 2, NAN, 3, 4, INFINITY};  // [1,2] of three models
  const Ints labels = {1};
  const Floats alpha = {1, 1, 1};
  Floats loss(3), correct(3);
  InterleavedXentGrad(
      {z.data(), labels.data(), nullptr, alpha.data(), 1, z.data(), loss.data(),
       correct.data(), nullptr, nullptr, 1, 2, 3},
      0, 3);
  EXPECT_TRUE(std::isfinite(loss[0]));
  EXPECT_TRUE(std::isfinite(loss[1]));
  EXPECT_TRUE(std::isnan(loss[2]));
  EXPECT_THAT(correct.Values(), testing::ElementsAre(1, 1, 0));
}

// Repeated values of the models, in memory that ends behind them.
Floats Repeat(const Floats& x) {
  Floats y(x.size() + kRepeatPad);
  RepeatModels(1, x.data(), x.size(), y.data());
  return y;
}

// Two ranges that meet at no vector's and no element's end.
template <class F>
void InTwoRanges(int64_t n, int64_t models, F f) {
  const int64_t split = n * models / 3;
  f(InterleavedRange{models, 0, split});
  f(InterleavedRange{models, split, n * models});
}

TEST_P(CpuInterleavedTest, ScaleGivesEveryModelItsOwnBits) {
  constexpr int64_t n = 11;
  for (const int64_t models : kModels) {
    const Floats x = Draw(n, models, 1), alpha = Draw(1, models, 2);
    const Floats alphas = Repeat(alpha);
    Floats y = x;
    InTwoRanges(n, models, [&](const InterleavedRange& range) {
      InterleavedScale(alphas.data(), y.data(), y.data(), range);
    });
    for (int64_t k = 0; k < models; ++k) {
      Floats want = Of(x, models, k);
      Scale(alpha[k], want.data(), want.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectBits(y, models, k, want));
    }
  }
}

// Weights and states, of one model or of many.
struct UpdateState {
  Floats w;
  std::vector<Floats> state;

  UpdateArrays On(const Floats& dw) {
    UpdateArrays arrays = {w.data(), dw.data(), {}, w.data(), {}};
    for (int i = 0; i < kMaxUpdateStates; ++i) {
      arrays.state[i] = arrays.state_out[i] = state[i].data();
    }
    return arrays;
  }
};

void ExpectUpdateBits(UpdateRule rule, int64_t models, bool flag) {
  SCOPED_TRACE(testing::Message() << "rule " << static_cast<int>(rule));
  constexpr int64_t n = 11;
  const float step = 7;
  const Floats dw = Draw(n, models, 1), lr = Draw(1, models, 2);
  UpdateState all = {Draw(n, models, 3), {}};
  for (int i = 0; i < kMaxUpdateStates; ++i) {
    all.state.push_back(RandomFloats(n * models, 0.01f, 1, 4 + i));
  }
  const UpdateState old = all;
  // Adam's betas and epsilon are attributes; others the models may have each.
  UpdateHypers hypers = {
      lr.data(), &step, {{0.9f}, {0.999f}, {1e-8f}, {0.1f}}, flag};
  std::vector<Floats> own;
  own.reserve(kMaxUpdateHypers);
  for (int i = rule == UpdateRule::kAdam ? 3 : 0; i < kMaxUpdateHypers; ++i) {
    own.push_back(Draw(1, models, 10 + i));
    hypers.hyper[i].at = own.back().data();
  }
  Floats coefficients(CoefficientFloats(rule, models));
  PrepareCoefficients(rule, hypers, models, coefficients.data());
  InTwoRanges(n, models, [&](const InterleavedRange& range) {
    InterleavedUpdate(rule, all.On(dw), coefficients.data(), flag, range);
  });
  for (int64_t k = 0; k < models; ++k) {
    UpdateState want = {Of(old.w, models, k), {}};
    for (int i = 0; i < kMaxUpdateStates; ++i) {
      want.state.push_back(Of(old.state[i], models, k));
    }
    UpdateHypers one = hypers;
    one.lr = lr.data() + k;
    for (Hyper& hyper : one.hyper) {
      if (hyper.at != nullptr) hyper.at += k;
    }
    const Floats g = Of(dw, models, k);
    Update(rule, want.On(g), one, 0, n);
    ASSERT_NO_FATAL_FAILURE(ExpectBits(all.w, models, k, want.w));
    for (int i = 0; i < kMaxUpdateStates; ++i) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectBits(all.state[i], models, k, want.state[i]));
    }
  }
}

TEST_P(CpuInterleavedTest, UpdatesGiveEveryModelItsOwnBits) {
  for (const int64_t models : kModels) {
    for (UpdateRule rule : kAllUpdateRules) {
      ASSERT_NO_FATAL_FAILURE(ExpectUpdateBits(rule, models, models % 2 == 0));
    }
  }
}

TEST_P(CpuInterleavedTest, AModelTakenOutAndPutBackIsTheSame) {
  const Floats x = {1, 2, 3, 4, 5, 6};  // [2] of three models
  Floats one(2), y(6), all(6);
  TakeModel(x.data(), 3, 1, one.data(), 2);
  EXPECT_THAT(one.Values(), testing::ElementsAre(2, 5));
  PutModel(one.data(), 3, 1, y.data(), 2);
  EXPECT_THAT(y.Values(), testing::ElementsAre(0, 2, 0, 0, 5, 0));
  InterleavedBroadcast(one.data(), all.data(), 2, 3);
  EXPECT_THAT(all.Values(), testing::ElementsAre(2, 2, 2, 5, 5, 5));
}

}  // namespace
}  // namespace onestep::cpu
