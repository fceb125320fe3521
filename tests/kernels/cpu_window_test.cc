// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/word2vec/window.h"
#include "tests/kernels/cpu_kernel_test.h"

namespace onestep::cpu {
namespace {

using CpuWindowTest = CpuKernelTest;
ONESTEP_INSTANTIATE_FOR_TARGETS(CpuWindowTest);

constexpr float kLr = 0.3f;

// Steps over small tables, so that rows come twice in a step and in the next.
struct Windows {
  struct Sizes {
    int64_t rows, cols, contexts, outputs, steps;
  };

  Windows(Sizes sizes, uint32_t seed)
      : size(sizes),
        in(RandomFloats(sizes.rows * sizes.cols, -1, 1, seed)),
        out(RandomFloats(sizes.rows * sizes.cols, -1, 1, seed + 1)),
        contexts(RandomInts(sizes.steps * sizes.contexts,
                            static_cast<int32_t>(sizes.rows), seed + 2)),
        outputs(RandomInts(sizes.steps * sizes.outputs,
                           static_cast<int32_t>(sizes.rows), seed + 3)),
        mask(sizes.steps * sizes.contexts, 1),
        spread(sizes.steps * sizes.contexts, 1),
        weights(sizes.steps * sizes.outputs, 1),
        labels(sizes.steps * sizes.outputs),
        loss(sizes.steps, -1),
        lr({kLr}) {
    bits.seed(seed);
    for (float& label : labels) label = static_cast<float>(bits() % 2);
  }

  // Weights of 0, 1 and others.
  void DrawWeights() {
    for (Floats* w : {&mask, &spread, &weights}) {
      for (float& value : *w) {
        value = bits() % 3 == 0 ? 0.0f : bits() % 4 == 0 ? 0.625f : 1.0f;
      }
    }
  }

  void Run(bool cbow, int64_t at_once) {
    const int64_t n =
        WindowScratchBytes(size.contexts, size.outputs, size.cols);
    // Whatever is left in it by others, NaN here.
    std::vector<float> memory(static_cast<size_t>(n / 4 + 16),
                              std::numeric_limits<float>::quiet_NaN());
    void* scratch = memory.data();
    size_t space = memory.size() * sizeof(float);
    scratch = std::align(64, static_cast<size_t>(n), scratch, space);
    for (int64_t t = 0; t < size.steps; t += at_once) {
      WindowArgs args = {};
      args.in = in.data();
      args.out = out.data();
      args.cols = size.cols;
      args.num_contexts = size.contexts;
      args.num_outputs = size.outputs;
      args.contexts = contexts.data() + t * size.contexts;
      args.mask = mask.data() + t * size.contexts;
      args.spread = spread.data() + t * size.contexts;
      args.outputs = outputs.data() + t * size.outputs;
      args.weights = weights.data() + t * size.outputs;
      if (labelled) args.labels = labels.data() + t * size.outputs;
      args.positives = 1;
      args.lr = lr.data();
      args.loss = loss.data() + t;
      args.loss_stride = 1;
      args.scratch = scratch;
      const int64_t steps = std::min(at_once, size.steps - t);
      if (cbow) {
        CbowWindows(args, steps);
      } else {
        SkipGramWindows(args, steps);
      }
    }
  }

  // Runs and compares with the formulas of the header, in float64.
  void Check(bool cbow) {
    std::vector<double> want_in = in.Doubles(), want_out = out.Doubles();
    std::vector<double> want_loss;
    for (int64_t t = 0; t < size.steps; ++t) {
      want_loss.push_back(Step(cbow, t, want_in, want_out));
    }
    Run(cbow, 3);
    ExpectNear(in, want_in, kTolerance);
    ExpectNear(out, want_out, kTolerance);
    ExpectNear(loss, want_loss, kTolerance);
  }

  double Step(bool cbow, int64_t t, std::vector<double>& in_rows,
              std::vector<double>& out_rows) const {
    const std::vector<double> x_old = in_rows, o_old = out_rows;
    const int64_t d = size.cols, first = t * size.contexts;
    double sum = 0;
    std::vector<double> mean(d), error(d);
    for (int64_t j = first; cbow && j < first + size.contexts; ++j) {
      for (int64_t i = 0; i < d; ++i) {
        mean[i] += mask[j] * x_old[contexts[j] * d + i];
      }
    }
    const auto pair = [&](const double* x, double m, int64_t k, double* dx) {
      const int64_t row = outputs[t * size.outputs + k] * d;
      const double w = m * weights[t * size.outputs + k];
      const double y = labelled ? labels[t * size.outputs + k] : k == 0;
      double z = 0;
      for (int64_t i = 0; i < d; ++i) z += x[i] * o_old[row + i];
      sum +=
          w * (std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - y * z);
      const double g = -kLr * w * (1 / (1 + std::exp(-z)) - y);
      for (int64_t i = 0; i < d; ++i) {
        dx[i] += g * o_old[row + i];
        out_rows[row + i] += g * x[i];
      }
    };
    for (int64_t k = 0; k < size.outputs; ++k) {
      if (cbow) pair(mean.data(), 1, k, error.data());
      for (int64_t j = first; !cbow && j < first + size.contexts; ++j) {
        pair(&x_old[contexts[j] * d], mask[j], k, &in_rows[contexts[j] * d]);
      }
    }
    for (int64_t j = first; cbow && j < first + size.contexts; ++j) {
      for (int64_t i = 0; i < d; ++i) {
        in_rows[contexts[j] * d + i] += spread[j] * error[i];
      }
    }
    return sum;
  }

  // Of float32 sums of up to 130 products of values near 1.
  static constexpr double kTolerance = 3e-5;

  Sizes size;
  Floats in, out;
  Ints contexts, outputs;
  Floats mask, spread, weights, labels, loss, lr;
  bool labelled = false;
  std::mt19937 bits;
};

TEST_P(CpuWindowTest, UpdatesBothTablesByTheOldRows) {
  for (const bool cbow : {false, true}) {
    for (const int64_t cols : kSizes) {
      SCOPED_TRACE(testing::Message() << cbow << " " << cols);
      Windows windows({40, cols, 1 + cols % 11, 6, 5}, 7);
      windows.Check(cbow);
    }
  }
}

TEST_P(CpuWindowTest, TakesAnyNumberOfContextsAndOutputs) {
  for (const bool cbow : {false, true}) {
    for (const int64_t contexts : {1, 2, 3, 4, 5, 8, 17, 40}) {
      for (const int64_t outputs : {1, 5, 6, 7, 12, 21, 33}) {
        SCOPED_TRACE(testing::Message()
                     << cbow << " " << contexts << " " << outputs);
        Windows windows({300, 20, contexts, outputs, 2}, 11);
        windows.Check(cbow);
      }
    }
  }
}

TEST_P(CpuWindowTest, AddsUpRowsThatAreNamedTwice) {
  for (const bool cbow : {false, true}) {
    for (uint32_t seed = 1; seed < 9; ++seed) {
      Windows windows({4, 19, 7, 8, 3}, seed);
      windows.labelled = seed % 2 == 0;
      windows.DrawWeights();
      windows.Check(cbow);
    }
  }
}

TEST_P(CpuWindowTest, TakesALabelForEachOutput) {
  for (const bool cbow : {false, true}) {
    Windows windows({50, 100, 10, 23, 4}, 3);
    windows.labelled = true;
    windows.Check(cbow);
  }
}

TEST_P(CpuWindowTest, LeavesTheTablesWhereNothingCounts) {
  Windows windows({9, 16, 4, 6, 2}, 5);
  const std::vector<float> in = windows.in.Values();
  for (float& value : windows.mask) value = 0;
  windows.Run(/*cbow=*/false, 2);
  EXPECT_EQ(windows.in.Values(), in);
  EXPECT_EQ(windows.loss[1], 0);
}

TEST_P(CpuWindowTest, HasTheSameBitsForAnySplitOfTheSteps) {
  for (const bool cbow : {false, true}) {
    Windows one({30, 33, 5, 6, 9}, 5), all({30, 33, 5, 6, 9}, 5);
    one.Run(cbow, 1);
    all.Run(cbow, 9);
    EXPECT_EQ(one.in.Values(), all.in.Values());
    EXPECT_EQ(one.out.Values(), all.out.Values());
    EXPECT_EQ(one.loss.Values(), all.loss.Values());
  }
}

TEST_P(CpuWindowTest, TakesTheRateOfEachStep) {
  Windows one({30, 8, 3, 6, 2}, 5), two({30, 8, 3, 6, 2}, 5);
  const Floats rates = {kLr, 0};
  one.Run(false, 1);  // both steps at kLr
  const int64_t n = WindowScratchBytes(3, 6, 8);
  Floats scratch(n / 4);
  WindowArgs args = {};
  args.in = two.in.data();
  args.out = two.out.data();
  args.cols = 8;
  args.num_contexts = 3;
  args.num_outputs = 6;
  args.contexts = two.contexts.data();
  args.mask = two.mask.data();
  args.outputs = two.outputs.data();
  args.weights = two.weights.data();
  args.positives = 1;
  args.lr = rates.data();
  args.lr_stride = 1;
  args.loss = two.loss.data();
  args.loss_stride = 1;
  args.scratch = scratch.data();
  SkipGramWindows(args, 2);
  EXPECT_EQ(two.loss.Values(), one.loss.Values());
  EXPECT_NE(two.in.Values(), one.in.Values());
}

TEST_P(CpuWindowTest, LargeDotsSaturateAndNotANumberShows) {
  for (const bool cbow : {false, true}) {
    Windows windows({9, 16, 4, 6, 1}, 5);
    for (float& value : windows.in) value *= 1e4f;
    windows.Run(cbow, 1);
    EXPECT_TRUE(std::isfinite(windows.loss[0]));
    for (float value : windows.out.Values()) ASSERT_TRUE(std::isfinite(value));
    windows.in[windows.contexts[0] * 16] =
        std::numeric_limits<float>::quiet_NaN();
    windows.Run(cbow, 1);
    EXPECT_TRUE(std::isnan(windows.loss[0]));
  }
}

}  // namespace
}  // namespace onestep::cpu
