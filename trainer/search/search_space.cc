// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_space.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/config.h"
#include "trainer/data/random.h"
#include "trainer/numbers.h"
#include "trainer/search/trial_columns.h"

namespace onestep {
namespace {

constexpr uint64_t kSearchStream = uint64_t{4} << 32;  // see random.h
constexpr int64_t kMaxPoints = 1000;

std::string ShortestText(double value) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), value).ptr};
}

// Few enough digits that people can type them.
double Rounded(double value) {
  char text[32];
  const char* const end = std::to_chars(text, std::end(text), value,
                                        std::chars_format::scientific, 3)
                              .ptr;
  std::from_chars(text, end, value);
  return value;
}

// Where `share` in [0, 1] of the range is.
double At(const NumberAxis& range, double share) {
  const double value = range.log
                           ? range.low * std::pow(range.high / range.low, share)
                           : range.low + (range.high - range.low) * share;
  return std::clamp(Rounded(value), range.low, range.high);
}

// "LOW..HIGH" or "LOW..HIGH:POINTS".
absl::StatusOr<NumberAxis> ParseRange(const std::string& text, bool log,
                                      double low, double high) {
  NumberAxis axis;
  axis.log = log;
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  const std::vector<std::string> ends = absl::StrSplit(parts[0], "..");
  if (parts.size() > 2 || ends.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "want LOW..HIGH or LOW..HIGH:POINTS behind lin: or log:, got ",
        Quote(text)));
  }
  ASSIGN_OR_RETURN(axis.low, ParseNumber(ends[0], low, high));
  ASSIGN_OR_RETURN(axis.high, ParseNumber(ends[1], low, high));
  if (axis.low >= axis.high || (log && axis.low <= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want LOW ", log ? "above 0 and " : "", "below HIGH, got ",
                     Quote(parts[0])));
  }
  if (parts.size() == 1) return axis;
  ASSIGN_OR_RETURN(const int64_t points, ParseInteger(parts[1], 2, kMaxPoints));
  for (int64_t i = 0; i < points; ++i) {
    axis.values.push_back(At(axis, static_cast<double>(i) / (points - 1)));
  }
  axis.values.front() = axis.low;
  axis.values.back() = axis.high;
  return axis;
}

// One trial; `pick` chooses one of so many values, and `random`, if there are
// ranges, draws from these.
Trial Choose(const SearchSpace& space, const Trial& base,
             const std::function<size_t(size_t)>& pick, Random* random) {
  const auto number = [&pick, random](const NumberAxis& axis) {
    return axis.values.empty() ? At(axis, random->Uniform())
                               : axis.values[pick(axis.values.size())];
  };
  Trial trial = base;
  const std::vector<int64_t>& hidden = space.hidden[pick(space.hidden.size())];
  trial.model.widths.insert(trial.model.widths.begin() + 1, hidden.begin(),
                            hidden.end());
  trial.batch = space.batch[pick(space.batch.size())];
  OptimizerSpec& optimizer = trial.optimizer;
  optimizer.kind = space.optimizer[pick(space.optimizer.size())];
  trial.model.activation = space.activation[pick(space.activation.size())];
  trial.lr = number(space.lr);
  if (optimizer.kind == OptimizerKind::kMomentum) {
    optimizer.momentum = static_cast<float>(number(space.momentum));
  } else {
    optimizer.nesterov = false;
    pick(1);  // the flags keep their places
  }
  optimizer.weight_decay = static_cast<float>(number(space.weight_decay));
  trial.seed = base.seed + pick(space.seeds);
  return trial;
}

// Steps through all combinations of picks, the last changing fastest.
class Odometer {
 public:
  size_t Pick(size_t size) {
    if (place_ == digits_.size()) digits_.push_back({0, size});
    Digit& digit = digits_[place_++];
    digit.size = size;
    return digit.value;
  }
  // False behind the last combination.
  bool Next() {
    place_ = 0;
    for (size_t i = digits_.size(); i-- > 0;) {
      if (++digits_[i].value < digits_[i].size) return true;
      digits_[i].value = 0;
    }
    return false;
  }

 private:
  struct Digit {
    size_t value = 0, size = 1;
  };
  std::vector<Digit> digits_;
  size_t place_ = 0;
};

absl::Status CheckHidden(const SearchSpace& space, const Trial& base) {
  for (const std::vector<int64_t>& hidden : space.hidden) {
    ModelSpec model = base.model;
    model.widths.insert(model.widths.begin() + 1, hidden.begin(), hidden.end());
    const auto widths = ParseWidths(model.ToString());
    if (!widths.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--hidden: ", widths.status().message()));
    }
  }
  return absl::OkStatus();
}

auto Key(const Trial& trial) {
  return std::tuple(trial.model.widths, trial.batch, trial.optimizer.kind,
                    trial.model.activation, trial.lr, trial.optimizer.momentum,
                    trial.optimizer.weight_decay, trial.seed);
}

std::string ToText(const NumberAxis& axis) {
  if (axis.values.empty()) {
    return absl::StrCat(axis.log ? "log:" : "lin:", ShortestText(axis.low),
                        "..", ShortestText(axis.high));
  }
  return absl::StrJoin(axis.values, ",", [](std::string* out, double value) {
    out->append(ShortestText(value));
  });
}

template <typename E>
std::string ToText(const std::vector<E>& values) {
  return absl::StrJoin(values, ",", [](std::string* out, E value) {
    out->append(NameOf(value));
  });
}

}  // namespace

absl::StatusOr<NumberAxis> ParseNumberAxis(const std::string& text, double low,
                                           double high) {
  absl::string_view range = text;
  if (absl::ConsumePrefix(&range, "log:")) {
    return ParseRange(std::string(range), /*log=*/true, low, high);
  }
  if (absl::ConsumePrefix(&range, "lin:")) {
    return ParseRange(std::string(range), /*log=*/false, low, high);
  }
  NumberAxis axis;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const double value, ParseNumber(word, low, high));
    if (std::count(axis.values.begin(), axis.values.end(), value) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("want each value once, got ", Quote(word), " again"));
    }
    axis.values.push_back(value);
  }
  return axis;
}

absl::StatusOr<std::vector<int64_t>> ParseHidden(const std::string& text) {
  std::vector<int64_t> widths;
  if (text == "none") return widths;
  for (const absl::string_view word : absl::StrSplit(text, '-')) {
    const absl::StatusOr<int64_t> width = ParseInteger(word, 1, 1 << 24);
    if (!width.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "want widths of the hidden layers like 128 or 128-64, or none, got ",
          Quote(text)));
    }
    widths.push_back(*width);
  }
  return widths;
}

absl::StatusOr<std::vector<Trial>> GridTrials(const SearchSpace& space,
                                              const Trial& base, int64_t most) {
  RETURN_IF_ERROR(CheckHidden(space, base));
  for (const auto& [flag, axis] :
       {std::pair("--lr", &space.lr), std::pair("--momentum", &space.momentum),
        std::pair("--weight-decay", &space.weight_decay)}) {
    if (axis->values.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": want a number of points, ", ToText(*axis),
                       ":5, or --trials N to draw, got ", ToText(*axis)));
    }
  }
  std::vector<Trial> trials;
  Odometer odometer;
  do {
    if (trials.size() == kMaxTrials) {
      return absl::InvalidArgumentError(absl::StrCat(
          "want at most ", kMaxTrials, " trials, got more; --trials N draws"));
    }
    trials.push_back(Choose(
        space, base, [&](size_t size) { return odometer.Pick(size); },
        nullptr));
    trials.back().index = static_cast<int64_t>(trials.size()) - 1;
  } while (odometer.Next() && (most == 0 || std::ssize(trials) < most));
  return trials;
}

absl::StatusOr<std::vector<Trial>> DrawTrials(const SearchSpace& space,
                                              const Trial& base,
                                              int64_t count) {
  RETURN_IF_ERROR(CheckHidden(space, base));
  Random random(base.seed, kSearchStream);
  const auto pick = [&random](size_t size) { return random.Below(size); };
  std::set<decltype(Key(base))> drawn;
  std::vector<Trial> trials;
  // Of as many trials as there are, the last is still found but for one case
  // in e^64.
  for (int64_t again = 0; again < 64 * (count + 16);) {
    Trial trial = Choose(space, base, pick, &random);
    if (!drawn.insert(Key(trial)).second) {
      ++again;
      continue;
    }
    again = 0;
    trial.index = static_cast<int64_t>(trials.size());
    trials.push_back(std::move(trial));
    if (trials.back().index + 1 == count) return trials;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--trials: want at most ", trials.size(),
                   ", as many as differ, got ", count));
}

std::vector<std::pair<std::string, std::string>> SpaceText(
    const SearchSpace& space) {
  return {
      {"hidden", absl::StrJoin(space.hidden, ",",
                               [](std::string* out, const auto& widths) {
                                 out->append(widths.empty()
                                                 ? "none"
                                                 : absl::StrJoin(widths, "-"));
                               })},
      {"batch", absl::StrJoin(space.batch, ",")},
      {"optimizer", ToText(space.optimizer)},
      {"activation", ToText(space.activation)},
      {"lr", ToText(space.lr)},
      {"momentum", ToText(space.momentum)},
      {"weight-decay", ToText(space.weight_decay)},
      {"seeds", absl::StrCat(space.seeds)},
  };
}

std::vector<std::string> VariedFlags(const std::vector<Trial>& trials) {
  std::vector<std::string> flags;
  for (const std::string& column : TrialColumns()) {
    std::set<nlohmann::ordered_json> values;
    for (const Trial& trial : trials) {
      values.insert(ColumnValue(trial, column));
    }
    values.erase(nullptr);  // where a trial has no such flag
    if (values.size() > 1) flags.push_back(column);
  }
  return flags;
}

}  // namespace onestep
