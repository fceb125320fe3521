// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/statistics.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/status.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

// Enough for limits whose own error is below the interval's width.
constexpr int kResamples = 1000;

constexpr double kNormal975 = 1.96;

// The 97.5 % quantile of Student's t; from 10 on within 1 % and not below.
double Student975(size_t degrees) {
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447,  2.365, 2.306, 2.262};
  return degrees <= std::size(kTable)
             ? kTable[degrees - 1]
             : kNormal975 + 2.7 / static_cast<double>(degrees);
}

double Stretch(size_t starts) {
  if (starts == 1) return 1;
  const auto n = static_cast<double>(starts);
  return std::sqrt(n / (n - 1)) * Student975(starts - 1) / kNormal975;
}

// Takes the values out of order.
double MedianInPlace(std::vector<double>& values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

struct Bootstrap {
  double value = 0;            // the mean of the starts' medians
  std::vector<double> errors;  // what it may be off by, one a resample
};

Bootstrap MeanOfMedians(const Samples& samples, Random& random) {
  const size_t starts = samples.size();
  CHECK(starts > 0);
  Bootstrap result;
  std::vector<double> medians;
  for (const std::vector<double>& start : samples) {
    medians.push_back(Median(start));
    result.value += medians.back() / static_cast<double>(starts);
  }
  const double stretch = Stretch(starts);
  std::vector<double> drawn;
  for (int resample = 0; resample < kResamples; ++resample) {
    double sum = 0;
    for (size_t i = 0; i < starts; ++i) {
      const size_t start = random.Below(starts);
      const std::vector<double>& from = samples[start];
      drawn.resize(from.size());
      for (double& value : drawn) value = from[random.Below(from.size())];
      sum += MedianInPlace(drawn) - medians[start] +
             stretch * (medians[start] - result.value);
    }
    result.errors.push_back(sum / static_cast<double>(starts));
  }
  return result;
}

Samples LogsOf(Samples samples) {
  for (std::vector<double>& start : samples) {
    for (double& value : start) value = std::log(value);
  }
  return samples;
}

// Of a logarithm, its value and its resampled errors.
Interval IntervalOf(const Bootstrap& log) {
  return {std::exp(log.value),
          std::exp(log.value + Percentile(log.errors, 0.025)),
          std::exp(log.value + Percentile(log.errors, 0.975))};
}

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

Interval PairedRatio(const Samples& a, const Samples& b, uint64_t seed) {
  CHECK(a.size() == b.size());
  Samples logs = LogsOf(a);
  for (size_t start = 0; start < logs.size(); ++start) {
    CHECK(a[start].size() == b[start].size());
    for (size_t i = 0; i < logs[start].size(); ++i) {
      logs[start][i] -= std::log(b[start][i]);
    }
  }
  Random random(seed);
  return IntervalOf(MeanOfMedians(logs, random));
}

Interval UnpairedRatio(const Samples& a, const Samples& b, uint64_t seed) {
  Random random(seed);
  Bootstrap ratio = MeanOfMedians(LogsOf(a), random);
  const Bootstrap divisor = MeanOfMedians(LogsOf(b), random);
  ratio.value -= divisor.value;
  for (int i = 0; i < kResamples; ++i) ratio.errors[i] -= divisor.errors[i];
  return IntervalOf(ratio);
}

}  // namespace onestep
