// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/peak.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/probe.h"
#include "runtime/cpu/cpu_info.h"
#include "runtime/cpu/parallel.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPeakSampleSeconds = 1e-3;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::string TakeTurnsNote(int threads) {
  const int cpus = UsableCpus();
  if (threads <= cpus) return "";
  return absl::StrCat(threads, " threads take turns on ", cpus,
                      cpus == 1 ? " CPU" : " CPUs",
                      ": a peak is what these reach");
}

PeakProbe::PeakProbe(int threads) : threads_(std::min(threads, UsableCpus())) {
  // On this thread alone, and the fastest of several: what interrupts the loop
  // must not pass for its work.
  const auto fastest = [this] {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 5; ++i) {
      const auto start = Clock::now();
      FmaLoop(iterations_);
      best = std::min(best, SecondsSince(start));
    }
    return best;
  };
  while (fastest() < kPeakSampleSeconds) iterations_ *= 2;
}

void PeakProbe::Sample() {
  std::vector<double> gflops(threads_);
  ParallelFor(threads_, threads_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const auto start = Clock::now();
      gflops[t] = FmaLoop(iterations_) * 1e-9;
      gflops[t] /= SecondsSince(start);
    }
  });
  best_gflops_ = std::max(best_gflops_,
                          std::accumulate(gflops.begin(), gflops.end(), 0.0));
}

}  // namespace onestep
