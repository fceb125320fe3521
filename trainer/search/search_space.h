// SPDX-License-Identifier: Apache-2.0
// Which trials a search is made of.
#ifndef ONESTEP_TRAINER_SEARCH_SEARCH_SPACE_H_
#define ONESTEP_TRAINER_SEARCH_SEARCH_SPACE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/model.h"
#include "trainer/search/trial.h"

namespace onestep {

inline constexpr int64_t kMaxTrials = 100'000;

// What a flag of numbers lists, or a range to draw from.
struct NumberAxis {
  std::vector<double> values;  // empty: from the range
  bool log = false;            // the range's scale
  double low = 0, high = 0;
};

// "0.1,0.2"; the ranges "lin:0..0.9" and "log:1e-4..1"; or a range with a
// number of points, "log:1e-4..1:5", which is the list of these, both ends
// among them, the others rounded to 4 digits. InvalidArgument names the item;
// each is to be from `low` to `high` and there once.
absl::StatusOr<NumberAxis> ParseNumberAxis(const std::string& text, double low,
                                           double high);

// "none" or widths joined by `-`: of the hidden layers. InvalidArgument.
absl::StatusOr<std::vector<int64_t>> ParseHidden(const std::string& text);

// The values each flag may take: what it listed.
struct SearchSpace {
  std::vector<std::vector<int64_t>> hidden = {{128}};  // of the hidden layers
  std::vector<int64_t> batch = {32};
  std::vector<OptimizerKind> optimizer = {OptimizerKind::kSgd};
  std::vector<Activation> activation = {Activation::kRelu};
  NumberAxis lr = {{0.1}};
  NumberAxis momentum = {{0.9}};  // of the optimizer momentum alone
  NumberAxis weight_decay = {{0}};
  int64_t seeds = 1;  // the first is the base's
};

// In these, `base` has what is the same in all trials (loss, nesterov), the
// first seed, and the widths {features, classes}. InvalidArgument names the
// flag: widths that are no model, more than kMaxTrials trials.

// All combinations, or the first `most` of them where that is not 0; the last
// of these flags changes fastest: hidden, batch, optimizer, activation, lr,
// momentum, weight decay, seed. InvalidArgument for a range: it has no number
// of points.
absl::StatusOr<std::vector<Trial>> GridTrials(const SearchSpace& space,
                                              const Trial& base,
                                              int64_t most = 0);

// `count` different trials, each value of each drawn from the base's seed:
// uniform over a list (of the seeds as well), by its scale from a range,
// rounded to 4 digits. Fewer are the first of more. InvalidArgument when there
// are not as many.
absl::StatusOr<std::vector<Trial>> DrawTrials(const SearchSpace& space,
                                              const Trial& base, int64_t count);

// Flag by flag, without dashes, as the flags would say it: {"lr", "0.1,1"}.
std::vector<std::pair<std::string, std::string>> SpaceText(
    const SearchSpace& space);

// The flags that are not the same in all trials, in that order.
std::vector<std::string> VariedFlags(const std::vector<Trial>& trials);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_SEARCH_SPACE_H_
