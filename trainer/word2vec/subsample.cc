// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/subsample.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace onestep {

std::vector<uint32_t> KeepThresholds(std::span<const int64_t> counts,
                                     double sample) {
  constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> thresholds(counts.size(), kAll);
  if (sample == 0) return thresholds;
  const auto total = static_cast<double>(
      std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double t =
      sample < 1 ? sample * total : std::floor(sample * (3 + std::sqrt(5)) / 2);
  for (size_t i = 0; i < counts.size(); ++i) {
    // Not with c / t, which may be too large for a double.
    const double share = t / static_cast<double>(counts[i]);
    const double kept = std::sqrt(share) + share;
    if (kept < 1) thresholds[i] = static_cast<uint32_t>(kept * kAll);
  }
  return thresholds;
}

}  // namespace onestep
