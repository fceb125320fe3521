// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference.h"
#include "tests/kernels/cuda_kernel_test.h"

namespace onestep::cuda {
namespace {

struct Shape {
  int64_t rows, cols;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.rows << " x " << shape.cols;
}

// Groups of every number of lanes, rows that are no multiple of the groups,
// one block and several.
constexpr Shape kShapes[] = {{1, 1},   {3, 2},   {32, 10},  {17, 3},
                             {129, 7}, {7, 129}, {256, 10}, {257, 17},
                             {33, 32}, {700, 2}, {5, 1000}, {300, 33}};

// What the op is asked for beside the loss, the gradient and the count.
struct Options {
  bool mse = false;
  bool gather = false;
  bool scaled = false;
  bool add_to_bias = false;
};

constexpr float kLr = 0.7f;

struct Inputs {
  Inputs(const Shape& shape, bool gather)
      : shape(shape),
        batch(shape.rows + 3),
        logits(RandomFloats(shape.rows * shape.cols, -8, 8, 1)),
        bias(RandomFloats(shape.cols, -1, 1, 2)),
        labels(RandomInts(gather ? 1000 : shape.rows,
                          static_cast<int32_t>(shape.cols), 3)),
        indices(RandomInts(shape.rows, 1000, 4)) {}

  std::vector<double> RowLabels(bool gather) const {
    std::vector<double> all(static_cast<size_t>(shape.rows));
    for (int64_t r = 0; r < shape.rows; ++r) {
      all[static_cast<size_t>(r)] = labels[gather ? indices[r] : r];
    }
    return all;
  }

  Shape shape;
  int64_t batch;
  Floats logits, bias;
  Ints labels, indices;
};

// dlogits, db, loss, correct, in place where that may be.
std::vector<float> LossGradOf(const Inputs& in, const Options& options,
                              Workspace& workspace, uint64_t seed) {
  Floats z = in.logits, db = in.bias, loss(1, -9), correct(1, -9);
  const Floats lr({kLr});
  LossGradParams p = {};
  p.mse = options.mse;
  p.logits = z.data();
  p.labels = in.labels.data();
  p.indices = options.gather ? in.indices.data() : nullptr;
  p.lr = options.scaled ? lr.data() : nullptr;
  p.bias = options.add_to_bias ? db.data() : nullptr;
  p.loss = loss.data();
  p.dlogits = z.data();
  p.correct = correct.data();
  p.db = db.data();
  p.rows = in.shape.rows;
  p.cols = in.shape.cols;
  p.batch = in.batch;
  p.workspace = workspace.data();
  RunLaunch(LossGrad(p), seed);
  std::vector<float> all = z.Values();
  const std::vector<float> sums = db.Values();
  all.insert(all.end(), sums.begin(), sums.end());
  all.insert(all.end(), {loss[0], correct[0]});
  return all;
}

struct Want {
  std::vector<double> dlogits, db;
  double loss, correct;
};

Want ReferenceLossGrad(const Inputs& in, const Options& options) {
  const auto [rows, cols] = in.shape;
  const std::vector<double> z = in.logits.Doubles();
  const std::vector<double> labels = in.RowLabels(options.gather);
  Want want;
  want.dlogits.resize(z.size());
  want.db.resize(static_cast<size_t>(cols));
  double* const dz = want.dlogits.data();
  double scale = options.scaled ? -static_cast<double>(kLr) : 1;
  if (options.mse) {
    std::vector<double> t(z.size());
    reference::OneHot(labels.data(), t.data(), rows, cols);
    const int64_t mean = in.batch * cols;
    want.loss = reference::MseLoss(z.data(), t.data(), rows * cols, mean);
    reference::MseGrad(z.data(), t.data(), dz, rows * cols, mean);
  } else {
    want.loss =
        reference::NllLoss(z.data(), labels.data(), rows, cols, in.batch);
    reference::Softmax(z.data(), dz, rows, cols);
    reference::MinusOneHot(dz, labels.data(), dz, rows, cols);
    scale /= static_cast<double>(in.batch);
  }
  want.correct = reference::CountCorrect(z.data(), labels.data(), rows, cols);
  reference::Scale(dz, scale, dz, rows * cols);
  reference::ReduceRows(dz, want.db.data(), rows, cols);
  for (int64_t c = 0; options.add_to_bias && c < cols; ++c) {
    want.db[static_cast<size_t>(c)] += in.bias[c];
  }
  return want;
}

void ExpectLossGrad(const Shape& shape, const Options& options) {
  SCOPED_TRACE(testing::Message() << shape << " mse " << options.mse);
  const Inputs in(shape, options.gather);
  Workspace workspace(LossWorkspaceBytes(shape.rows, shape.cols));
  const std::vector<float> got = OnAnyOrder(
      [&](uint64_t seed) { return LossGradOf(in, options, workspace, seed); });
  const Want want = ReferenceLossGrad(in, options);
  const auto db = got.begin() + shape.rows * shape.cols;
  ExpectNmse({got.begin(), db}, want.dlogits);
  ExpectNmse({db, got.end() - 2}, want.db);
  ExpectNmse({got.end() - 2, got.end() - 1}, {want.loss});
  EXPECT_EQ(got.back(), want.correct);
}

TEST(CudaLossTest, LossGradMatchesFloat64InPlace) {
  int64_t in_parts = 0;
  for (const Shape& shape : kShapes) {
    in_parts += LossWorkspaceBytes(shape.rows, shape.cols) > 0;
    // Where rows sum to 0 without the bias, float32 has only rounding errors.
    ExpectLossGrad(shape,
                   {.gather = true, .scaled = true, .add_to_bias = true});
    ExpectLossGrad(shape, {.mse = true});
    ExpectLossGrad(shape, {.mse = true, .gather = true, .scaled = true});
  }
  EXPECT_EQ(in_parts, 3);
}

TEST(CudaLossTest, LossGradWithoutOptionsMatchesFloat64) {
  ExpectLossGrad({32, 10}, {});
  ExpectLossGrad({2048, 10}, {});
}

TEST(CudaLossTest, LossGradMayLeaveTheSumOut) {
  const Inputs in({5, 3}, false);
  Floats loss(1), correct(1), dz(15);
  LossGradParams p = {};
  p.logits = in.logits.data();
  p.labels = in.labels.data();
  p.loss = loss.data();
  p.dlogits = dz.data();
  p.correct = correct.data();
  p.rows = 5;
  p.cols = 3;
  p.batch = in.batch;
  RunLaunch(LossGrad(p), 1);
  ExpectNmse(dz.Values(), ReferenceLossGrad(in, {}).dlogits);
}

TEST(CudaLossTest, TheUnfusedLossesMatchFloat64) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(testing::Message() << shape);
    const auto [rows, cols] = shape;
    const Inputs in(shape, false);
    Workspace workspace(LossWorkspaceBytes(rows, cols));
    const Want want = ReferenceLossGrad(in, {});
    const auto loss = OnAnyOrder([&](uint64_t seed) {
      Floats out(1, -9);
      RunLaunch(NllLoss(in.logits.data(), in.labels.data(), out.data(),
                        shape.rows, shape.cols, in.batch, workspace.data()),
                seed);
      return out.Values();
    });
    ExpectNmse(loss, {want.loss});
    Floats correct(1, -9);
    RunLaunch(CountCorrect(in.logits.data(), in.labels.data(), correct.data(),
                           rows, cols, workspace.data()),
              1);
    EXPECT_EQ(correct[0], want.correct);
  }
}

TEST(CudaLossTest, SoftmaxAndItsGradientMatchFloat64InPlace) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(testing::Message() << shape);
    const auto [rows, cols] = shape;
    const int64_t n = rows * cols;
    const Floats x = RandomFloats(n, -8, 8, 1), dy = RandomFloats(n, -1, 1, 2);
    std::vector<double> want(static_cast<size_t>(n));
    reference::Softmax(x.Doubles().data(), want.data(), rows, cols);
    const auto softmax = OnAnyOrder([&](uint64_t seed) {
      Floats y = x;
      RunLaunch(Softmax(y.data(), y.data(), shape.rows, shape.cols), seed);
      return y.Values();
    });
    ExpectNmse(softmax, want);
    // Not the softmax, whose gradient of one column is rounding errors only.
    Floats y = RandomFloats(n, 0, 1, 3), dx = dy;
    reference::SoftmaxGrad(y.Doubles().data(), dy.Doubles().data(), want.data(),
                           rows, cols);
    RunLaunch(SoftmaxGrad(y.data(), dx.data(), dx.data(), rows, cols), 1);
    ExpectNmse(dx.Values(), want);
    RunLaunch(SoftmaxGrad(y.data(), dy.data(), y.data(), rows, cols), 1);
    EXPECT_EQ(y.Values(), dx.Values());
  }
}

TEST(CudaLossTest, MinusOneHotMatchesFloat64InPlace) {
  for (const auto& [rows, cols] : {Shape{3, 7}, Shape{32, 10}, Shape{33, 8}}) {
    Floats y = RandomFloats(rows * cols, 0, 1, 1);
    const Ints labels = RandomInts(rows, static_cast<int32_t>(cols), 2);
    std::vector<double> want(static_cast<size_t>(rows * cols));
    reference::MinusOneHot(y.Doubles().data(), labels.Doubles().data(),
                           want.data(), rows, cols);
    RunLaunch(MinusOneHot(y.data(), labels.data(), y.data(), rows, cols), 1);
    ExpectNmse(y.Values(), want);
  }
}

TEST(CudaLossTest, MseMatchesFloat64) {
  for (int64_t n : {1, 3, 17, 129, 320, 1000, 40960}) {
    SCOPED_TRACE(n);
    const Floats y = RandomFloats(n, -1, 1, 1), t = RandomFloats(n, -1, 1, 2);
    const int64_t elements = n + 5;
    Workspace workspace(ColumnSumsWorkspaceBytes(n, 1));
    const auto loss = OnAnyOrder([&](uint64_t seed) {
      Floats out(1, -9);
      RunLaunch(MseLoss(y.data(), t.data(), out.data(), n, elements,
                        workspace.data()),
                seed);
      return out.Values();
    });
    ExpectNmse(loss, {reference::MseLoss(y.Doubles().data(), t.Doubles().data(),
                                         n, elements)});
    Floats dy = t;
    RunLaunch(MseGrad(y.data(), dy.data(), dy.data(), n, elements), 1);
    std::vector<double> want(static_cast<size_t>(n));
    reference::MseGrad(y.Doubles().data(), t.Doubles().data(), want.data(), n,
                       elements);
    ExpectNmse(dy.Values(), want);
  }
}

// ---- special values --------------------------------------------------------
struct RowsResult {
  float loss, correct;
  std::vector<float> dlogits;
};

// Rows of `labels.size()` logits each, whose mean is their sum.
RowsResult SoftmaxXent(const std::vector<float>& logits,
                       const std::vector<int32_t>& labels) {
  const Floats z(logits);
  const Ints label(labels);
  Floats loss(1, -9), correct(1, -9), dz(z.size());
  LossGradParams p = {};
  p.logits = z.data();
  p.labels = label.data();
  p.loss = loss.data();
  p.dlogits = dz.data();
  p.correct = correct.data();
  p.rows = label.size();
  p.cols = z.size() / label.size();
  p.batch = 1;
  RunLaunch(LossGrad(p), 1);
  return {loss[0], correct[0], dz.Values()};
}

TEST(CudaLossTest, EqualLogitsOfAnySizeGiveTheLogOfTheirNumber) {
  const RowsResult row = SoftmaxXent({1e8f, 1e8f}, {0});
  EXPECT_FLOAT_EQ(row.loss, 0.69314718f);
  EXPECT_EQ(row.dlogits, (std::vector<float>{-0.5f, 0.5f}));
  EXPECT_FLOAT_EQ(SoftmaxXent({-1e8f, -1e8f}, {1}).loss, 0.69314718f);
}

TEST(CudaLossTest, LargeDifferencesStayFinite) {
  const RowsResult row = SoftmaxXent({1e30f, -1e30f}, {1});
  EXPECT_EQ(row.loss, 2e30f);
  EXPECT_EQ(row.dlogits, (std::vector<float>{1, -1}));
}

TEST(CudaLossTest, OfEqualLogitsTheFirstOneIsTheGuess) {
  EXPECT_EQ(SoftmaxXent({1, 2, 2}, {1}).correct, 1);
  EXPECT_EQ(SoftmaxXent({1, 2, 2}, {2}).correct, 0);
  EXPECT_EQ(SoftmaxXent({0, 0, 0, 5, 5, 1}, {0, 1}).correct, 1);
}

TEST(CudaLossTest, ARowWithALogitThatIsNotFiniteHasNoLossAndIsWrong) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (int at : {0, 1, 2}) {
      std::vector<float> z = {0, 3, 0, 0, 3, 0};
      z[static_cast<size_t>(at)] = bad;
      const RowsResult rows = SoftmaxXent(z, {1, 1});
      EXPECT_TRUE(std::isnan(rows.loss)) << bad << " at " << at;
      EXPECT_EQ(rows.correct, 1) << bad << " at " << at;
    }
  }
}

TEST(CudaLossTest, ANanMakesItsRowOfSoftmaxNan) {
  Floats x({NAN, 1, 1, 1, 1, 1});
  RunLaunch(Softmax(x.data(), x.data(), 2, 3), 1);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(x[i]), i < 3);
}

}  // namespace
}  // namespace onestep::cuda
