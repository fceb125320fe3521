// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/bandwidth.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/clock.h"
#include "runtime/parallel.h"

namespace onestep {
namespace {

constexpr int64_t kLeastBytes = 4096;  // of a copy
constexpr double kSampleNs = 1e6;
constexpr int kSamples = 20;

}  // namespace

double CopyBandwidth(int threads, int64_t bytes) {
  const int64_t half = std::max(kLeastBytes, bytes / (2 * threads));
  std::vector<std::vector<char>> memory(threads);
  const auto copy = [&](int64_t repeats) {
    const int64_t begin = NowNs();
    ParallelFor(threads, threads, 1, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        memory[t].resize(2 * half, 1);  // by the thread that uses it
        char* const x = memory[t].data();
        for (int64_t r = 0; r < repeats; ++r) {
          // Back and forth, so that no copy can be left out.
          std::memcpy(r % 2 == 0 ? x + half : x, r % 2 == 0 ? x : x + half,
                      half);
        }
      }
    });
    return static_cast<double>(std::max<int64_t>(1, NowNs() - begin));
  };
  copy(1);
  int64_t repeats = 1;
  while (copy(repeats) < kSampleNs) repeats *= 2;
  double best = 0;  // bytes per nanosecond
  for (int i = 0; i < kSamples; ++i) {
    const double moved = 2.0 * static_cast<double>(half * repeats) * threads;
    best = std::max(best, moved / copy(repeats));
  }
  return best;
}

}  // namespace onestep
