// SPDX-License-Identifier: Apache-2.0
// Gathers, conversions and what happens between steps.
#include "kernels/reference.h"
#include "tests/kernels/cuda_kernel_test.h"

namespace onestep::cuda {
namespace {

using Bytes = Guarded<uint8_t>;

Bytes RandomBytes(int64_t n) {
  Bytes x(n);
  const Ints values = RandomInts(n, 256, 7);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<uint8_t>(values[i]);
  return x;
}

TEST(CudaDataTest, GatherConvertMatchesFloat64) {
  for (int64_t rows : {1, 7, 32, 300}) {
    for (int64_t cols : {1, 3, 10, 784, 1283}) {
      const Bytes table = RandomBytes(19 * cols);
      const Ints indices = RandomInts(rows, 19, 1);
      const float alpha = 1 / 255.0f;
      std::vector<double> want(static_cast<size_t>(rows * cols));
      reference::GatherRows(table.Doubles().data(), indices.Doubles().data(),
                            want.data(), rows, cols);
      reference::Scale(want.data(), alpha, want.data(), rows * cols);
      ExpectNmse(OnAnyOrder([&](uint64_t seed) {
                   Floats y(rows * cols, -9);
                   RunLaunch(GatherConvert(table.data(), indices.data(), alpha,
                                           y.data(), rows, cols),
                             seed);
                   return y.Values();
                 }),
                 want);
    }
  }
}

// Rows of 16, 4 and 1 bytes' multiples.
TEST(CudaDataTest, GatherRowsCopiesRowsOfAnySize) {
  for (int64_t row_bytes : {1, 3, 4, 16, 20, 784, 4099}) {
    const Bytes table = RandomBytes(11 * row_bytes);
    const Ints indices({10, 0, 3, 3, 9});
    Bytes y(5 * row_bytes);
    RunLaunch(GatherRows(table.data(), indices.data(), y.data(), 5, row_bytes),
              1);
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t row = indices[i / row_bytes];
      ASSERT_EQ(y[i], table[row * row_bytes + i % row_bytes]) << row_bytes;
    }
  }
}

TEST(CudaDataTest, RowsAreCopiedByUnitsThatDivideTheirAddresses) {
  const Ints indices({0});
  alignas(16) const uint8_t table[48] = {};
  alignas(16) uint8_t y[48];
  const auto name = [&](int64_t offset) -> std::string {
    return GatherRows(table + offset, indices.data(), y, 1, 16).name;
  };
  EXPECT_EQ(name(16), "CopyRows<16>");
  EXPECT_EQ(name(4), "CopyRows<4>");
  EXPECT_EQ(name(2), "CopyRows<1>");
}

TEST(CudaDataTest, SliceRowsTakesAPartOfEachRow) {
  for (int64_t part : {1, 4, 10, 16}) {
    const Floats x = RandomFloats(7 * 24, -1, 1, 1);
    Floats y(7 * part);
    RunLaunch(SliceRows(x.data() + 8, y.data(), 7, part * 4, 24 * 4), 1);
    for (int64_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], x[i / part * 24 + 8 + i % part]);
    }
  }
}

TEST(CudaDataTest, CastsAndFillsAreExact) {
  for (int64_t n : kElements) {
    const Bytes bytes = RandomBytes(n);
    const Ints ints = RandomInts(n, 1 << 24, 1);
    Floats y(n);
    RunLaunch(CastU8(bytes.data(), y.data(), n), 1);
    EXPECT_EQ(y.Doubles(), bytes.Doubles());
    RunLaunch(CastI32(ints.data(), y.data(), n), 1);
    EXPECT_EQ(y.Doubles(), ints.Doubles());
    RunLaunch(Fill(y.data(), 2.5f, n), 1);
    EXPECT_EQ(y.Values(), std::vector<float>(static_cast<size_t>(n), 2.5f));
  }
}

TEST(CudaDataTest, OneHotMatchesFloat64) {
  for (int64_t classes : {1, 3, 8, 10, 300}) {
    const Ints labels = RandomInts(33, static_cast<int32_t>(classes), 1);
    Floats y(33 * classes, -9);
    std::vector<double> want(static_cast<size_t>(33 * classes));
    reference::OneHot(labels.Doubles().data(), want.data(), 33, classes);
    RunLaunch(OneHot(labels.data(), y.data(), 33, classes), 1);
    EXPECT_EQ(y.Doubles(), want);
  }
}

// Two steps' results go out, and the next steps' inputs come in, of more words
// than threads, and of sizes that sixteen bytes do not divide.
TEST(CudaBoundaryTest, PublishesThenAdvancesThenFetches) {
  constexpr int64_t kBatch = 2050;
  const Ints indices = RandomInts(4 * kBatch, 60000, 1);
  const Floats lr({0.1f, 0.2f, 0.3f, 0.4f});
  Ints batch(kBatch);
  Floats rate(1), loss(1), losses(4, -9), weights({1, 2, 3, 4}), copies(16, -9);
  StepControl control = {1};
  BoundaryParams p = {};
  p.control = &control;
  p.advance = 1;
  p.publishes = 2;
  p.fetches = 2;
  p.moves[0] = {losses.data(), loss.data(), 4, 4};
  p.moves[1] = {copies.data(), weights.data(), 16, 16};
  p.moves[2] = {batch.data(), indices.data(), 4 * kBatch, 4 * kBatch};
  p.moves[3] = {rate.data(), lr.data(), 4, 4};
  for (int step : {1, 2}) {
    loss[0] = static_cast<float>(step);
    weights[0] = static_cast<float>(step);
    RunLaunch(StepBoundary(p), 1);
    ASSERT_EQ(control.step, step + 1);
    EXPECT_EQ(rate[0], lr[step + 1]);
    for (int64_t i = 0; i < kBatch; ++i) {
      ASSERT_EQ(batch[i], indices[(step + 1) * kBatch + i]);
    }
  }
  EXPECT_EQ(losses.Values(), (std::vector<float>{-9, 1, 2, -9}));
  EXPECT_EQ(copies.Values(), (std::vector<float>{-9, -9, -9, -9, 1, 2, 3, 4, 2,
                                                 2, 3, 4, -9, -9, -9, -9}));
}

// As before the first step, which has nothing to publish.
TEST(CudaBoundaryTest, MayStayAtTheStep) {
  const Floats lr({0.1f, 0.2f});
  Floats rate(1);
  StepControl control = {1};
  BoundaryParams p = {};
  p.control = &control;
  p.fetches = 1;
  p.moves[0] = {rate.data(), lr.data(), 4, 4};
  RunLaunch(StepBoundary(p), 1);
  EXPECT_EQ(control.step, 1);
  EXPECT_EQ(rate[0], 0.2f);
}

// What is fetched may overwrite what is published.
TEST(CudaBoundaryTest, PublishesBeforeItFetches) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const Floats next = RandomFloats(3000, 0, 1, 1);
    Floats now(1000, 7), out(2000, -9);
    StepControl control = {0};
    BoundaryParams p = {};
    p.control = &control;
    p.advance = 1;
    p.publishes = 1;
    p.fetches = 1;
    p.moves[0] = {out.data(), now.data(), 4000, 4000};
    p.moves[1] = {now.data(), next.data(), 4000, 4000};
    RunLaunch(StepBoundary(p), seed);
    for (int64_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(out[i], 7);
      ASSERT_EQ(now[i], next[1000 + i]);
    }
  }
}

TEST(CudaBoundaryTest, AllMovesAreMade) {
  const Floats from = RandomFloats(kMaxBoundaryMoves, 0, 1, 1);
  Floats to(kMaxBoundaryMoves, -9);
  StepControl control = {0};
  BoundaryParams p = {};
  p.control = &control;
  p.publishes = 5;
  p.fetches = kMaxBoundaryMoves - p.publishes;
  for (int i = 0; i < kMaxBoundaryMoves; ++i) {
    p.moves[i] = {to.data() + i, from.data() + i, 0, 4};
  }
  RunLaunch(StepBoundary(p), 1);
  EXPECT_EQ(to.Values(), from.Values());
}

TEST(CudaBoundaryTest, AdvanceAddsSteps) {
  StepControl control = {5};
  RunLaunch(Advance(&control, 50), 1);
  EXPECT_EQ(control.step, 55);
}

}  // namespace
}  // namespace onestep::cuda
