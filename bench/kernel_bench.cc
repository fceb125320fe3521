// SPDX-License-Identifier: Apache-2.0
// The CPU kernels on the shapes of 784-128-10 and 64-32-10, one thread. Each
// row shows its rate, for matmuls also as a share of the FMA peak, which is
// measured at the start. The tool that the constants of kernels/cpu were
// tuned with.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/sparse.h"
#include "kernels/cpu/update.h"
#include "kernels/probe.h"

namespace onestep::cpu {
namespace {

using benchmark::Counter;
using benchmark::State;

constexpr int64_t kBatch = 32, kInputs = 784, kHidden = 128, kClasses = 10;

// FLOP/s; the best of several tries, as other work can only slow a try.
double FmaPeak() {
  static const double peak = [] {
    double best = 0;
    for (int i = 0; i < 10; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const double flops = FmaLoop(2'000'000);
      const std::chrono::duration<double> time =
          std::chrono::steady_clock::now() - start;
      best = std::max(best, flops / time.count());
    }
    return best;
  }();
  return peak;
}

// Lines of their own, as in the memory of a chain.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlign{256};
  T* allocate(size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), kAlign));
  }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlign); }
  bool operator==(const AlignedAllocator&) const { return true; }
};
using Floats = std::vector<float, AlignedAllocator<float>>;

Floats Values(int64_t n) {
  Floats x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 37 % 64) / 64 - 0.5f;
  }
  return x;
}

std::vector<int32_t> Labels(int64_t n, int64_t classes) {
  std::vector<int32_t> labels(static_cast<size_t>(n));
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<int32_t>(static_cast<int64_t>(i) * 7 % classes);
  }
  return labels;
}

void CountBytes(State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

// Arguments m, n, k and whether it is a weight gradient: a transposed view,
// accumulating; else a forward with bias and relu.
void BM_MatMul(State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const bool gradient = state.range(3) != 0;
  const Floats a = Values(m * k), b = Values(k * n), bias = Values(n);
  Floats c(static_cast<size_t>(m * n));
  const MatMulArgs args = {
      .a = a.data(),
      .a_row = gradient ? 1 : k,
      .a_col = gradient ? m : 1,
      .b = b.data(),
      .ldb = n,
      .c = c.data(),
      .ldc = n,
      .m = m,
      .n = n,
      .k = k,
      .bias = gradient ? nullptr : bias.data(),
      .accumulate = gradient,
      .act = gradient ? Activation::kNone : Activation::kRelu};
  for (auto _ : state) MatMul(args, 0, m);
  const double flops =
      2.0 * static_cast<double>(m * n * k * state.iterations());
  state.counters["FLOP/s"] = Counter(flops, Counter::kIsRate);
  state.counters["peak"] = Counter(flops / FmaPeak(), Counter::kIsRate);
}
BENCHMARK(BM_MatMul)
    ->ArgNames({"m", "n", "k", "grad"})
    ->Args({32, 128, 784, 0})
    ->Args({32, 10, 128, 0})
    ->Args({784, 128, 32, 1})
    ->Args({128, 10, 32, 1})
    ->Args({32, 128, 10, 0})
    ->Args({32, 64, 784, 0})  // half of the hidden units
    ->Args({32, 10, 64, 0})
    ->Args({784, 64, 32, 1})
    ->Args({64, 10, 32, 1})
    ->Args({32, 64, 10, 0})
    ->Args({4096, 128, 784, 0})
    ->Args({4096, 10, 128, 0})
    ->Args({784, 128, 4096, 1})
    ->Args({128, 10, 4096, 1})
    ->Args({4096, 128, 10, 0})
    ->Args({8, 32, 64, 0})
    ->Args({8, 10, 32, 0})
    ->Args({64, 32, 8, 1})
    ->Args({32, 10, 8, 1})
    ->Args({8, 32, 10, 0})
    ->Args({1, 16, 8, 0})  // 8-16-4, one row
    ->Args({1, 4, 16, 0})
    ->Args({8, 16, 1, 1})
    ->Args({16, 4, 1, 1})
    ->Args({1, 16, 4, 0});

void BM_Transpose(State& state) {
  const int64_t rows = state.range(0), cols = state.range(1);
  const Floats x = Values(rows * cols);
  Floats y(x.size());
  for (auto _ : state) Transpose(x.data(), y.data(), rows, cols);
  CountBytes(state, 8 * rows * cols);
}
BENCHMARK(BM_Transpose)
    ->ArgNames({"rows", "cols"})
    ->Args({kHidden, kClasses})
    ->Args({kHidden / 2, kClasses})
    ->Args({16, 4});

void BM_ActivationForward(State& state) {
  const Floats x = Values(kBatch * kHidden);
  Floats y(x.size());
  for (auto _ : state) {
    ActivationForward(static_cast<Activation>(state.range(0)), x.data(),
                      y.data(), kBatch * kHidden);
  }
  CountBytes(state, 8 * kBatch * kHidden);
}
BENCHMARK(BM_ActivationForward)
    ->ArgName("act")
    ->DenseRange(static_cast<int>(Activation::kRelu),
                 static_cast<int>(Activation::kGelu));

void BM_ActivationGradBias(State& state) {
  const Floats y = Values(kBatch * kHidden), dy = y;
  Floats dx(y.size()), db(kHidden);
  for (auto _ : state) {
    ActivationGradBias(static_cast<Activation>(state.range(0)), y.data(),
                       dy.data(), dx.data(), db.data(), false, kBatch, kHidden,
                       0, kHidden);
  }
  CountBytes(state, 12 * kBatch * kHidden);
}
BENCHMARK(BM_ActivationGradBias)
    ->ArgName("act")
    ->DenseRange(static_cast<int>(Activation::kRelu),
                 static_cast<int>(Activation::kGelu));

void BM_Softmax(State& state) {
  const int64_t cols = state.range(0);
  const Floats x = Values(kBatch * cols);
  Floats y(x.size());
  for (auto _ : state) Softmax(x.data(), y.data(), cols, 0, kBatch);
  CountBytes(state, 8 * kBatch * cols);
}
BENCHMARK(BM_Softmax)->ArgName("cols")->Arg(kClasses)->Arg(1000);

void BM_SoftmaxXentGradRows(State& state) {
  const int64_t rows = state.range(0), cols = state.range(1);
  const Floats z = Values(rows * cols);
  const std::vector<int32_t> labels = Labels(rows, cols);
  Floats dz(z.size()), loss(z.size()), correct(z.size());
  for (auto _ : state) {
    SoftmaxXentGradRows(z.data(), labels.data(), nullptr, 1.0f / kBatch,
                        dz.data(), loss.data(), correct.data(), cols, 0, rows);
  }
  CountBytes(state, 8 * rows * cols);
}
BENCHMARK(BM_SoftmaxXentGradRows)
    ->ArgNames({"rows", "cols"})
    ->Args({kBatch, kClasses})
    ->Args({kBatch, 1000})
    ->Args({1, 4});

void BM_GatherConvert(State& state) {
  const std::vector<uint8_t> table(1000 * kInputs);
  const std::vector<int32_t> rows = Labels(kBatch, 1000);
  Floats y(kBatch * kInputs);
  for (auto _ : state) {
    GatherConvert(table.data(), rows.data(), 1 / 255.0f, y.data(), kInputs, 0,
                  kBatch);
  }
  CountBytes(state, 5 * kBatch * kInputs);
}
BENCHMARK(BM_GatherConvert);

// 1000 pictures in which a fifth of the pixels, in strokes of five, is not
// zero.
std::vector<uint8_t> Pictures() {
  std::vector<uint8_t> table(1000 * kInputs);
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t row = i / kInputs, stroke = i % kInputs / 5;
    if ((stroke * 7 + row) % 5 == 0) table[i] = static_cast<uint8_t>(i | 1);
  }
  return table;
}

void BM_GatherSparse(State& state) {
  const std::vector<uint8_t> table = Pictures();
  const std::vector<int32_t> rows = Labels(kBatch, 1000);
  std::vector<int32_t> x(kBatch * SparseWidth(kInputs));
  for (auto _ : state) {
    GatherSparse(table.data(), rows.data(), 1 / 255.0f, x.data(), kInputs, 0,
                 kBatch);
  }
  CountBytes(state, kBatch * kInputs);
}
BENCHMARK(BM_GatherSparse);

// The sparse products; FLOP/s counts those of the nonzeros alone.
void BM_Sparse(State& state) {
  const int64_t n = state.range(0);
  const bool gradient = state.range(1) != 0;
  const std::vector<uint8_t> table = Pictures();
  const std::vector<int32_t> rows = Labels(kBatch, 1000);
  std::vector<int32_t> x(kBatch * SparseWidth(kInputs));
  GatherSparse(table.data(), rows.data(), 1 / 255.0f, x.data(), kInputs, 0,
               kBatch);
  const auto bias = Values(n);
  auto w = Values(kInputs * n);
  auto y = Values(kBatch * n);
  for (auto _ : state) {
    if (gradient) {
      SparseOuter({.x = x.data(),
                   .dz = y.data(),
                   .lddz = n,
                   .dw = w.data(),
                   .lddw = n,
                   .rows = kBatch,
                   .n = n,
                   .k = kInputs});
    } else {
      SparseMatMul({.x = x.data(),
                    .w = w.data(),
                    .ldw = n,
                    .y = y.data(),
                    .ldy = n,
                    .n = n,
                    .k = kInputs,
                    .bias = bias.data(),
                    .act = Activation::kRelu},
                   0, kBatch);
    }
  }
  const double nonzeros = kBatch * kInputs / 5.0;
  state.counters["FLOP/s"] =
      Counter(2.0 * nonzeros * static_cast<double>(n * state.iterations()),
              Counter::kIsRate);
}
BENCHMARK(BM_Sparse)
    ->ArgNames({"n", "grad"})
    ->ArgsProduct({{kHidden / 2, kHidden}, {0, 1}});

void BM_ReduceRows(State& state) {
  const int64_t cols = state.range(0);
  const Floats x = Values(kBatch * cols);
  Floats y(static_cast<size_t>(cols));
  for (auto _ : state) {
    ReduceRows(x.data(), y.data(), false, kBatch, cols, 0, cols);
  }
  CountBytes(state, 4 * kBatch * cols);
}
BENCHMARK(BM_ReduceRows)->ArgName("cols")->Arg(kClasses)->Arg(kHidden);

void BM_AddBias(State& state) {
  const int64_t cols = state.range(0);
  Floats x = Values(kBatch * cols);
  const Floats b = Values(cols);
  for (auto _ : state) AddBias(x.data(), b.data(), x.data(), kBatch, cols);
  CountBytes(state, 8 * kBatch * cols);
}
BENCHMARK(BM_AddBias)->ArgName("cols")->Arg(kClasses)->Arg(kHidden);

// Of one model: w, dw, the states that there are, and the results.
void BM_Update(State& state, UpdateRule rule, int64_t bytes) {
  const int64_t n = state.range(0);
  Floats w = Values(n), m(w.size()), v(w.size());
  const Floats dw = w;
  const float lr = 0.001f, step = 10;
  const UpdateArrays arrays = {w.data(),
                               dw.data(),
                               {m.data(), v.data()},
                               w.data(),
                               {m.data(), v.data()}};
  UpdateHypers hypers = {&lr, &step, {}, false};
  if (rule == UpdateRule::kAdam) {
    hypers.hyper[0].value = 0.9f;
    hypers.hyper[1].value = 0.999f;
    hypers.hyper[2].value = 1e-8f;
  }
  for (auto _ : state) Update(rule, arrays, hypers, 0, n);
  CountBytes(state, bytes * n);
}
BENCHMARK_CAPTURE(BM_Update, sgd, UpdateRule::kSgd, 12)
    ->Arg(kHidden* kClasses)
    ->Arg(kInputs* kHidden);
BENCHMARK_CAPTURE(BM_Update, adam, UpdateRule::kAdam, 28)
    ->Arg(kHidden* kClasses)
    ->Arg(kInputs* kHidden);

}  // namespace
}  // namespace onestep::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("isa", onestep::CpuIsa());
  benchmark::AddCustomContext("fma_peak_gflops",
                              std::to_string(onestep::cpu::FmaPeak() / 1e9));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
