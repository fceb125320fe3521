// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "trainer/search/trial_columns.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::vector<std::string>;

// As people write it.
std::string ColumnText(const Trial& trial, const std::string& column) {
  const Json value = ColumnValue(trial, column);
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return absl::StrCat(value.get<double>());
  return value.dump();
}

std::string LossText(double loss) {
  return std::isfinite(loss) ? absl::StrFormat("%.5g", loss) : "-";
}

std::string AccuracyText(double accuracy) {
  return std::isfinite(accuracy) ? absl::StrFormat("%.2f %%", 100 * accuracy)
                                 : "-";
}

Cells RowOf(const TrialResult& result, const std::vector<std::string>& varied) {
  Cells row = {absl::StrCat(result.trial.index)};
  for (const std::string& column : varied) {
    row.push_back(ColumnText(result.trial, column));
  }
  row.push_back(absl::StrCat(result.epochs.size()));
  if (const TrialEpoch* last = LastEpoch(result)) {
    row.push_back(LossText(last->loss));
    row.push_back(LossText(last->validation_loss));
    row.push_back(AccuracyText(last->validation_accuracy));
  } else {
    row.insert(row.end(), 3, "-");
  }
  row.push_back(StatusText(result));
  return row;
}

// Columns to the right, but for the last.
std::string Aligned(const std::vector<Cells>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Cells& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Cells& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppendFormat(&text, "%*s  ", widths[i], row[i]);
    }
    absl::StrAppend(&text, row.back(), "\n");
  }
  return text;
}

std::string BestTrialText(const SearchOutcome& outcome) {
  if (outcome.best < 0) {
    const bool any = std::any_of(
        outcome.results.begin(), outcome.results.end(), [](const auto& result) {
          return result.status == TrialStatus::kDiverged;
        });
    return any ? "no best: no trial that did not diverge\n"
               : "no best: no trial has trained an epoch\n";
  }
  const TrialResult& best = outcome.results[outcome.best];
  std::string text = absl::StrCat("best: trial ", best.trial.index);
  for (const std::string& column : outcome.varied) {
    absl::StrAppend(&text, ", ", column, " ", ColumnText(best.trial, column));
  }
  const TrialEpoch& last = best.epochs.back();
  return absl::StrCat(text, ": validation loss ",
                      LossText(last.validation_loss), ", accuracy ",
                      AccuracyText(last.validation_accuracy), " after epoch ",
                      best.epochs.size(), "\n");
}

std::string GroupText(const GroupReport& group) {
  std::string text =
      absl::StrFormat("%s: %d %s in %d %s: ", group.kind, group.trials,
                      group.trials == 1 ? "trial" : "trials", group.programs,
                      group.programs == 1 ? "program" : "programs");
  Cells times;
  if (group.vector_us > 0) {
    times.push_back(absl::StrFormat("vector %.2f us", group.vector_us));
  }
  if (group.loop_us > 0) {
    times.push_back(absl::StrFormat("loop %.2f us", group.loop_us));
  }
  if (!times.empty()) {
    absl::StrAppend(&text, absl::StrJoin(times, ", "), " a model step: ");
  }
  absl::StrAppend(&text, group.way);
  for (const absl::string_view refused : group.refused) {
    const size_t colon = refused.find(':');
    absl::StrAppend(&text, "; ", refused.substr(0, colon), " refused",
                    refused.substr(colon));
  }
  return absl::StrCat(text, "\n");
}

// With all digits; empty where it is not known.
std::string Exact(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const std::string text = value.dump();
  return text == "null" ? "" : text;
}

// No value has what RFC 4180 wants quotes around.
void AppendRecord(const Cells& row, std::string& csv) {
  absl::StrAppend(&csv, absl::StrJoin(row, ","), "\r\n");
}

}  // namespace

std::string TrialTable(const std::vector<const TrialResult*>& results,
                       const std::vector<std::string>& varied) {
  Cells header = {"trial"};
  header.insert(header.end(), varied.begin(), varied.end());
  header.insert(header.end(),
                {"epochs", "loss", "validation loss", "accuracy", "status"});
  std::vector<Cells> rows = {header};
  for (const TrialResult* result : results) {
    rows.push_back(RowOf(*result, varied));
  }
  return Aligned(rows);
}

std::string SearchTable(const SearchOutcome& outcome) {
  std::vector<const TrialResult*> begun = BestFirst(outcome);
  const size_t waiting = std::erase_if(begun, [](const TrialResult* result) {
    return result->status == TrialStatus::kWaiting;
  });
  std::string text = absl::StrCat(TrialTable(begun, outcome.varied), "\n");
  if (waiting > 0) {
    absl::StrAppend(&text, waiting, waiting == 1 ? " trial" : " trials",
                    " not begun\n");
  }
  absl::StrAppend(&text, BestTrialText(outcome));
  for (const GroupReport& group : outcome.groups) {
    absl::StrAppend(&text, GroupText(group));
  }
  const size_t trials = outcome.results.size();
  absl::StrAppendFormat(&text, "%d %s in %.2f s", trials,
                        trials == 1 ? "trial" : "trials", outcome.seconds);
  if (outcome.resumed > 0) {
    absl::StrAppend(&text, ", ", outcome.resumed,
                    " of them ended by an earlier run");
  }
  if (!outcome.ended.empty()) {
    absl::StrAppend(&text, ", ended early: ", outcome.ended);
  }
  return absl::StrCat(text, "\n");
}

std::string SearchCsv(const SearchOutcome& outcome) {
  Cells header = {"trial"};
  for (const std::string& column : TrialColumns()) {
    header.push_back(ColumnKey(column));
  }
  header.insert(header.end(),
                {"epochs", "loss", "train_accuracy", "validation_loss",
                 "validation_accuracy", "status", "diverged_step"});
  std::string csv;
  AppendRecord(header, csv);
  for (const TrialResult& result : outcome.results) {
    Cells row = {absl::StrCat(result.trial.index)};
    for (const std::string& column : TrialColumns()) {
      row.push_back(Exact(ColumnValue(result.trial, column)));
    }
    row.push_back(absl::StrCat(result.epochs.size()));
    if (const TrialEpoch* last = LastEpoch(result)) {
      for (const double value :
           {last->loss, last->train_accuracy, last->validation_loss,
            last->validation_accuracy}) {
        row.push_back(Exact(value));
      }
    } else {
      row.insert(row.end(), 4, "");
    }
    row.push_back(StatusName(result));
    row.push_back(result.diverged_step > 0 ? absl::StrCat(result.diverged_step)
                                           : "");
    AppendRecord(row, csv);
  }
  return csv;
}

}  // namespace onestep
