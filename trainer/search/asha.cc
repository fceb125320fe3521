// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/asha.h"

#include <cmath>
#include <limits>

namespace onestep {

std::pair<double, double> ScoreOf(const TrialEpoch& epoch,
                                  SearchMetric metric) {
  constexpr double kWorst = std::numeric_limits<double>::infinity();
  if (!std::isfinite(epoch.validation_loss)) return {kWorst, kWorst};
  return {metric == SearchMetric::kLoss ? epoch.validation_loss
                                        : -epoch.validation_accuracy,
          epoch.validation_loss};
}

bool IsRung(const AshaOptions& options, int64_t epoch) {
  while (epoch > options.min_epochs && epoch % options.eta == 0) {
    epoch /= options.eta;
  }
  return epoch == options.min_epochs;
}

bool GoesOn(const AshaOptions& options, const std::vector<TrialResult>& results,
            int64_t index, int64_t epoch) {
  const size_t rung = epoch;
  const size_t before = epoch == options.min_epochs ? 0 : epoch / options.eta;
  const auto own = ScoreOf(results[index].epochs[rung - 1], options.metric);
  int64_t there = 1, better = 0;
  for (int64_t i = 0; i < index; ++i) {
    const TrialResult& other = results[i];
    const size_t done = other.epochs.size();
    if (done >= rung) {
      ++there;
      better += ScoreOf(other.epochs[rung - 1], options.metric) <= own;
    } else if (other.diverged_step > 0 && done >= before) {
      ++there;
    }
  }
  return better < (there + options.eta - 1) / options.eta;
}

}  // namespace onestep
