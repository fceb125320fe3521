// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "trainer/machine_info.h"
#include "trainer/report/report_page.h"
#include "trainer/search/search_report.h"
#include "trainer/search/trial_columns.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// What a page of 1 MB has room for.
constexpr size_t kPageTrials = 500;
constexpr size_t kPageEpochs = 3000;  // of all of them together

Json ToJson(const TrialEpoch& epoch, size_t number) {
  return {{"epoch", number},
          {"loss", epoch.loss},
          {"train_accuracy", epoch.train_accuracy},
          {"validation_loss", epoch.validation_loss},
          {"validation_accuracy", epoch.validation_accuracy}};
}

// Every `stride`-th epoch, and the last.
Json ToJson(const TrialResult& result, size_t stride) {
  Json json = {{"index", result.trial.index}};
  for (const std::string& column : TrialColumns()) {
    json[ColumnKey(column)] = ColumnValue(result.trial, column);
  }
  json["status"] = StatusName(result);
  json["status_text"] = StatusText(result);
  json["diverged_step"] =
      result.diverged_step > 0 ? Json(result.diverged_step) : Json();
  json["epochs_done"] = result.epochs.size();
  json["epochs"] = Json::array();
  for (size_t i = 0; i < result.epochs.size(); ++i) {
    if (i % stride > 0 && i + 1 < result.epochs.size()) continue;
    json["epochs"].push_back(ToJson(result.epochs[i], i + 1));
  }
  return json;
}

Json ToJson(const GroupReport& group) {
  const auto measured = [](double us) { return us > 0 ? Json(us) : Json(); };
  return {{"kind", group.kind},
          {"name", group.name},
          {"input", group.sparse ? "sparse" : "dense"},
          {"trials", group.trials},
          {"way", group.way},
          {"programs", group.programs},
          {"vector_us", measured(group.vector_us)},
          {"loop_us", measured(group.loop_us)},
          {"lowering", group.lowering},
          {"refused", group.refused}};
}

Json ToJson(const WaveEpoch& epoch) {
  return {{"wave", epoch.wave},
          {"epoch", epoch.epoch},
          {"trials", epoch.trials},
          {"train_seconds", epoch.train_seconds},
          {"evaluate_seconds", epoch.evaluate_seconds}};
}

// All but the trials and the waves.
Json Summary(const SearchOutcome& outcome) {
  Json json;
  json["best"] = outcome.best >= 0 ? Json(outcome.best) : Json();
  json["varied"] = Json::array();
  for (const std::string& column : outcome.varied) {
    json["varied"].push_back(ColumnKey(column));
  }
  double train_seconds = 0, evaluate_seconds = 0;
  int64_t model_epochs = 0;
  for (const WaveEpoch& epoch : outcome.epochs) {
    train_seconds += epoch.train_seconds;
    evaluate_seconds += epoch.evaluate_seconds;
    model_epochs += epoch.trials;
  }
  json["ended"] = outcome.ended;
  json["seconds"] = outcome.seconds;
  json["train_seconds"] = train_seconds;
  json["evaluate_seconds"] = evaluate_seconds;
  json["model_epochs"] = model_epochs;
  json["resumed"] = outcome.resumed;
  json["groups"] = Json::array();
  for (const GroupReport& group : outcome.groups) {
    json["groups"].push_back(ToJson(group));
  }
  return json;
}

std::string TitleOf(const SearchOutcome& outcome) {
  const size_t trials = outcome.results.size();
  return absl::StrCat("Search of ", trials, trials == 1 ? " trial" : " trials",
                      outcome.varied.empty() ? "" : " over ",
                      absl::StrJoin(outcome.varied, ", "));
}

}  // namespace

Json SearchToJson(const SearchOutcome& outcome) {
  Json json = Summary(outcome);
  json["trials"] = Json::array();
  for (const TrialResult& result : outcome.results) {
    json["trials"].push_back(ToJson(result, 1));
  }
  json["waves"] = Json::array();
  for (const WaveEpoch& epoch : outcome.epochs) {
    json["waves"].push_back(ToJson(epoch));
  }
  return json;
}

std::string SearchPage(const SearchOutcome& outcome,
                       const Json& configuration) {
  Json page = Summary(outcome);
  page["title"] = TitleOf(outcome);
  page["written"] = absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::Now(),
                                     absl::UTCTimeZone());
  page["config"] = configuration;
  page["config"].erase("command");
  page["command"] = configuration.value("command", "");
  page["machine"] = MachineInfo();
  page["all_trials"] = outcome.results.size();

  std::vector<const TrialResult*> shown = BestFirst(outcome);
  shown.resize(std::min(shown.size(), kPageTrials));
  size_t epochs = 0;
  for (const TrialResult* result : shown) epochs += result->epochs.size();
  const size_t stride =
      std::max<size_t>(1, (epochs + kPageEpochs - 1) / kPageEpochs);
  page["epoch_stride"] = stride;
  page["trials"] = Json::array();
  for (const TrialResult* result : shown) {
    page["trials"].push_back(ToJson(*result, stride));
  }
  return SearchReportPage(page);
}

}  // namespace onestep
