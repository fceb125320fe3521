// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/bandwidth.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/cpu/cpu_info.h"
#include "runtime/cpu/parallel.h"

namespace onestep {
namespace {

constexpr int64_t kLeastBytes = 4096;  // of a copy
constexpr double kSampleNs = 1e6;
constexpr int kSamples = 20;

}  // namespace

double CopyBandwidth(int threads, int64_t bytes) {
  threads = std::min(threads, UsableCpus());
  const int64_t half = std::max(kLeastBytes, bytes / (2 * threads));
  std::vector<std::vector<char>> memory(threads);
  // GB/s of thread `t`, timed by itself as in PeakProbe.
  const auto copy = [&](int64_t t, int64_t repeats) {
    memory[t].resize(2 * half, 1);  // by the thread that uses it
    char* const x = memory[t].data();
    const int64_t begin = NowNs();
    for (int64_t r = 0; r < repeats; ++r) {
      // Back and forth, so that no copy can be left out.
      std::memcpy(r % 2 == 0 ? x + half : x, r % 2 == 0 ? x : x + half, half);
    }
    return 2.0 * static_cast<double>(half * repeats) /
           static_cast<double>(std::max<int64_t>(1, NowNs() - begin));
  };
  copy(0, 1);
  const double moved = 2.0 * static_cast<double>(half);
  const auto repeats = static_cast<int64_t>(
      std::ceil(kSampleNs * std::max(copy(0, 1), copy(0, 1)) / moved));
  double best = 0;
  std::vector<double> gbs(threads);
  for (int i = 0; i < kSamples; ++i) {
    ParallelFor(threads, threads, 1, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) gbs[t] = copy(t, repeats);
    });
    best = std::max(best, std::accumulate(gbs.begin(), gbs.end(), 0.0));
  }
  return best;
}

}  // namespace onestep
