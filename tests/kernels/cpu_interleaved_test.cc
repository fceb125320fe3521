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

TEST_P(CpuInterleavedTest, UpdatesGiveEveryModelItsOwnBits) {
  constexpr int64_t n = 11;
  for (const int64_t models : kModels) {
    const Floats old_w = Draw(n, models, 1), dw = Draw(n, models, 2);
    const Floats old_v = Draw(n, models, 3), lr = Draw(1, models, 4);
    const Floats momentum = Draw(1, models, 5), decay = Draw(1, models, 6);
    const Floats lrs = Repeat(lr), momenta = Repeat(momentum),
                 decays = Repeat(decay);
    Floats sgd = old_w, w = old_w, v = old_v, scaled = old_w;
    const bool nesterov = models % 2 == 0;
    InTwoRanges(n, models, [&](const InterleavedRange& range) {
      InterleavedSgd(sgd.data(), dw.data(), lrs.data(), decays.data(),
                     sgd.data(), range);
      InterleavedMomentum(w.data(), dw.data(), v.data(),
                          {lrs.data(), momenta.data(), decays.data(), nesterov},
                          w.data(), v.data(), range);
      InterleavedScale(lrs.data(), scaled.data(), scaled.data(), range);
    });
    for (int64_t k = 0; k < models; ++k) {
      Floats want = Of(old_w, models, k), want_v = Of(old_v, models, k);
      const Floats g = Of(dw, models, k);
      SgdUpdate(want.data(), g.data(), lr[k], decay[k], want.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectBits(sgd, models, k, want));
      Floats want_w = Of(old_w, models, k);
      MomentumUpdate(want_w.data(), g.data(), want_v.data(),
                     {lr[k], momentum[k], decay[k], nesterov}, want_w.data(),
                     want_v.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectBits(w, models, k, want_w));
      ASSERT_NO_FATAL_FAILURE(ExpectBits(v, models, k, want_v));
      Floats want_scaled = Of(old_w, models, k);
      Scale(lr[k], want_scaled.data(), want_scaled.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectBits(scaled, models, k, want_scaled));
    }
  }
}

TEST_P(CpuInterleavedTest, AdamGivesEveryModelItsOwnBits) {
  constexpr int64_t n = 11;
  for (const int64_t models : kModels) {
    const bool decoupled = models % 2 == 0;
    const Adam shared = {0, 7, 0.9f, 0.999f, 1e-8f, 0, decoupled};
    const Floats old_w = Draw(n, models, 1), dw = Draw(n, models, 2);
    const Floats old_m = Draw(n, models, 3), lr = Draw(1, models, 4);
    const Floats decay = Draw(1, models, 5);
    const Floats old_v = RandomFloats(n * models, 0.01f, 1, 6);
    Floats w = old_w, m = old_m, v = old_v;
    Floats rate(models + kRepeatPad), l2 = rate, shrink = rate;
    const InterleavedAdamArgs args = {rate.data(), l2.data(), shrink.data()};
    PrepareAdam(lr.data(), decay.data(), models, shared, args);
    InTwoRanges(n, models, [&](const InterleavedRange& range) {
      InterleavedAdam(w.data(), dw.data(), m.data(), v.data(), shared, args,
                      w.data(), m.data(), v.data(), range);
    });
    for (int64_t k = 0; k < models; ++k) {
      Floats want = Of(old_w, models, k), want_m = Of(old_m, models, k),
             want_v = Of(old_v, models, k);
      Adam options = shared;
      options.lr = lr[k];
      options.weight_decay = decay[k];
      AdamUpdate(want.data(), Of(dw, models, k).data(), want_m.data(),
                 want_v.data(), options, want.data(), want_m.data(),
                 want_v.data(), n);
      ASSERT_NO_FATAL_FAILURE(ExpectBits(w, models, k, want));
      ASSERT_NO_FATAL_FAILURE(ExpectBits(m, models, k, want_m));
      ASSERT_NO_FATAL_FAILURE(ExpectBits(v, models, k, want_v));
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
