// SPDX-License-Identifier: Apache-2.0
#include "trainer/peak.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "kernels/probe.h"
#include "runtime/parallel.h"

namespace onestep {
namespace {

constexpr double kSampleSeconds = 1e-3;

}  // namespace

PeakProbe::PeakProbe(int threads) : threads_(threads) {
  while (Time() < kSampleSeconds) iterations_ *= 2;
}

void PeakProbe::Sample() {
  const double seconds = Time();
  best_gflops_ = std::max(best_gflops_, flops_ / seconds * 1e-9);
}

double PeakProbe::Time() {
  std::vector<double> flops(threads_);
  const auto start = std::chrono::steady_clock::now();
  ParallelFor(threads_, threads_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) flops[t] = FmaLoop(iterations_);
  });
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  flops_ = std::accumulate(flops.begin(), flops.end(), 0.0);
  return seconds.count();
}

}  // namespace onestep
