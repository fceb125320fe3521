// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/trial_columns.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "trainer/config.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

struct Column {
  const char* name;
  Json (*value)(const Trial& trial);
};

Json Hidden(const Trial& trial) {
  const std::vector<int64_t>& widths = trial.model.widths;
  if (widths.size() <= 2) return "none";
  return absl::StrJoin(widths.begin() + 1, widths.end() - 1, "-");
}

Json Momentum(const Trial& trial) {
  if (trial.optimizer.kind != OptimizerKind::kMomentum) return nullptr;
  return AsWritten(trial.optimizer.momentum);
}

constexpr Column kColumns[] = {
    {"hidden", Hidden},
    {"batch", [](const Trial& trial) { return Json(trial.batch); }},
    {"optimizer",
     [](const Trial& trial) { return Json(NameOf(trial.optimizer.kind)); }},
    {"activation",
     [](const Trial& trial) { return Json(NameOf(trial.model.activation)); }},
    {"lr", [](const Trial& trial) { return Json(trial.lr); }},
    {"momentum", Momentum},
    {"weight-decay",
     [](const Trial& trial) {
       return Json(AsWritten(trial.optimizer.weight_decay));
     }},
    {"seed", [](const Trial& trial) { return Json(trial.seed); }},
};

// What trials are in order of, but for the best: smaller is better.
std::tuple<int, double, int64_t> Rank(const TrialResult& result,
                                      bool by_accuracy) {
  const int64_t index = result.trial.index;
  if (result.status == TrialStatus::kDiverged) return {1, 0, index};
  const TrialEpoch* last = LastEpoch(result);
  if (last == nullptr) return {2, 0, index};
  const double score =
      by_accuracy ? -last->validation_accuracy : last->validation_loss;
  return {0, std::isfinite(score) ? score : HUGE_VAL, index};
}

}  // namespace

const std::vector<std::string>& TrialColumns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Column& column : kColumns) all.push_back(column.name);
    return all;
  }();
  return names;
}

std::string ColumnKey(absl::string_view column) {
  return absl::StrReplaceAll(column, {{"-", "_"}});
}

Json ColumnValue(const Trial& trial, absl::string_view column) {
  return std::find_if(std::begin(kColumns), std::end(kColumns),
                      [&](const Column& c) { return c.name == column; })
      ->value(trial);
}

std::string StatusName(const TrialResult& result) {
  switch (result.status) {
    case TrialStatus::kWaiting:
      return "not begun";
    case TrialStatus::kTraining:
      return "broken off";
    case TrialStatus::kFinished:
      return "finished";
    case TrialStatus::kStopped:
      return "stopped";
    case TrialStatus::kDiverged:
      return "diverged";
  }
  return "?";
}

std::string StatusText(const TrialResult& result) {
  const std::string name = StatusName(result);
  switch (result.status) {
    case TrialStatus::kTraining:
      return result.epochs.empty()
                 ? absl::StrCat(name, " in epoch 1")
                 : absl::StrCat(name, " after epoch ", result.epochs.size());
    case TrialStatus::kStopped:
      return absl::StrCat(name, " at epoch ", result.epochs.size());
    case TrialStatus::kDiverged:
      return absl::StrCat(name, " at step ", result.diverged_step);
    case TrialStatus::kWaiting:
    case TrialStatus::kFinished:
      break;
  }
  return name;
}

const TrialEpoch* LastEpoch(const TrialResult& result) {
  return result.epochs.empty() ? nullptr : &result.epochs.back();
}

std::vector<const TrialResult*> BestFirst(const SearchOutcome& outcome) {
  std::vector<const TrialResult*> order;
  for (const TrialResult& result : outcome.results) order.push_back(&result);
  const auto key = [&](const TrialResult* result) {
    return std::tuple(result->trial.index != outcome.best,
                      Rank(*result, outcome.by_accuracy));
  };
  std::sort(order.begin(), order.end(),
            [&](const auto* a, const auto* b) { return key(a) < key(b); });
  return order;
}

}  // namespace onestep
