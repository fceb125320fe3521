// SPDX-License-Identifier: Apache-2.0
#include "trainer/statistics.h"

#include <algorithm>
#include <cmath>

#include "runtime/status.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

// More than enough for limits whose own error is below the interval's width.
constexpr int kResamples = 2000;

}  // namespace

double Percentile(std::vector<double> values, double p) {
  CHECK(!values.empty() && p >= 0 && p <= 1);
  std::sort(values.begin(), values.end());
  const double position = p * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above],
                   position - static_cast<double>(below));
}

Interval RatioOfMedians(const std::vector<double>& a,
                        const std::vector<double>& b, uint64_t seed) {
  CHECK(a.size() == b.size());
  Random random(seed);
  std::vector<double> ratios, drawn_a(a.size()), drawn_b(b.size());
  for (int r = 0; r < kResamples; ++r) {
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t pair = random.Below(a.size());
      drawn_a[i] = a[pair];
      drawn_b[i] = b[pair];
    }
    ratios.push_back(Median(drawn_a) / Median(drawn_b));
  }
  return {Median(a) / Median(b), Percentile(ratios, 0.025),
          Percentile(ratios, 0.975)};
}

}  // namespace onestep
