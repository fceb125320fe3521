// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_STATISTICS_H_
#define ONESTEP_TRAINER_STATISTICS_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace onestep {

// The value below which a share `p` in [0, 1] of the values lies, between two
// of them by linear interpolation. REQUIRES: at least one value.
double Percentile(std::vector<double> values, double p);

inline double Median(std::vector<double> values) {
  return Percentile(std::move(values), 0.5);
}

struct Interval {
  double value = 0;
  double low = 0, high = 0;  // 95 %
};

// median(a) / median(b) of samples that were taken in pairs, a[i] just before
// or after b[i], and its percentile bootstrap interval (Efron 1979): pairs are
// drawn with replacement, so that what slows both at once cancels out. Equal
// arguments give equal intervals.
// REQUIRES: as many in `a` as in `b`, at least one, all above 0.
Interval RatioOfMedians(const std::vector<double>& a,
                        const std::vector<double>& b, uint64_t seed = 1);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_STATISTICS_H_
