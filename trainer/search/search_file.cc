// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status.h"
#include "trainer/json_text.h"
#include "trainer/model_file.h"
#include "trainer/output_dir.h"
#include "trainer/search/search_report.h"
#include "trainer/search/trial_columns.h"
#include "trainer/search/trial_config.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kSearchFile[] = "search.json";
// How it runs, not what comes out of it.
constexpr const char* kOfTheRun[] = {
    "threads",    "affinity", "parallel",        "group",
    "time_limit", "command",  "steps_per_launch"};

// Losses that were not finite are null.
double ToNumber(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity()
                        : json.get<double>();
}

std::string Show(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Whether there can be such a one in a search of `epochs` each.
bool IsPossible(const TrialResult& result, int64_t epochs) {
  const int64_t done = std::ssize(result.epochs);
  const bool diverged = result.diverged_step > 0;
  switch (result.status) {
    case TrialStatus::kWaiting:
      return !diverged && done == 0;
    case TrialStatus::kTraining:
      return !diverged && done < epochs;
    case TrialStatus::kFinished:
      return !diverged && done == epochs;
    case TrialStatus::kStopped:
      return !diverged && done > 0 && done < epochs;
    case TrialStatus::kDiverged:
      return diverged && done < epochs;
  }
  return false;
}

bool ReadStatus(const Json& name, TrialResult& result) {
  for (const TrialStatus status :
       {TrialStatus::kFinished, TrialStatus::kStopped, TrialStatus::kDiverged,
        TrialStatus::kTraining, TrialStatus::kWaiting}) {
    result.status = status;
    if (name == StatusName(result)) return true;
  }
  return false;
}

// What `json` says of the trial. Throws what nlohmann throws.
absl::Status ReadResult(const Json& json, int64_t epochs, TrialResult& result) {
  for (const std::string& column : TrialColumns()) {
    const Json want = ColumnValue(result.trial, column);
    const Json& got = json.at(ColumnKey(column));
    if (got != want) {
      return absl::DataLossError(absl::StrCat("trial ", result.trial.index,
                                              ": want ", column, " ",
                                              Show(want), ", got ", Show(got)));
    }
  }
  if (!ReadStatus(json.at("status"), result)) {
    return absl::DataLossError(absl::StrCat("trial ", result.trial.index,
                                            ": want a status, got ",
                                            Show(json.at("status"))));
  }
  if (!json.at("diverged_step").is_null()) {
    result.diverged_step = json.at("diverged_step").get<int64_t>();
  }
  for (const Json& epoch : json.at("epochs")) {
    result.epochs.push_back({ToNumber(epoch.at("loss")),
                             ToNumber(epoch.at("train_accuracy")),
                             ToNumber(epoch.at("validation_loss")),
                             ToNumber(epoch.at("validation_accuracy"))});
  }
  if (!IsPossible(result, epochs)) {
    return absl::DataLossError(
        absl::StrCat("trial ", result.trial.index, ": ", StatusName(result),
                     " after ", result.epochs.size(), " of ", epochs,
                     " epochs, diverged_step ", result.diverged_step));
  }
  return absl::OkStatus();
}

GroupReport ReadGroup(const Json& json) {
  const auto us = [&json](const char* key) {
    return json.at(key).is_null() ? 0 : json.at(key).get<double>();
  };
  GroupReport group;
  group.kind = json.at("kind");
  group.trials = json.at("trials");
  group.way = json.at("way");
  group.programs = json.at("programs");
  group.vector_us = us("vector_us");
  group.loop_us = us("loop_us");
  group.lowering = json.at("lowering");
  group.name = json.at("name");
  group.sparse = json.at("input") == "sparse";
  group.refused = json.at("refused").get<std::vector<std::string>>();
  return group;
}

// One of our files in the folder, or the draft of one that was broken off.
bool IsOurs(absl::string_view name, bool drafts_alone) {
  const size_t draft = name.find(".tmp.");
  if (drafts_alone && draft == absl::string_view::npos) return false;
  const absl::string_view file = name.substr(0, draft);
  return file == kSearchFile || file == "trials.csv" || file == "search.html" ||
         file == "best" ||
         (absl::StartsWith(file, "trial-") &&
          absl::EndsWith(file, ".safetensors"));
}

}  // namespace

absl::Status ReadOutcome(const Json& json, int64_t epochs,
                         SearchOutcome& outcome) {
  std::vector<TrialResult>& results = outcome.results;
  const Json trials = json.value("trials", Json());
  if (!trials.is_array() || trials.size() != results.size()) {
    return absl::DataLossError(
        absl::StrCat("want ", results.size(), " trials, got ", trials.size()));
  }
  try {
    for (size_t i = 0; i < results.size(); ++i) {
      RETURN_IF_ERROR(ReadResult(trials[i], epochs, results[i]));
    }
    for (const Json& group : json.at("groups")) {
      outcome.groups.push_back(ReadGroup(group));
    }
    for (const Json& wave : json.at("waves")) {
      outcome.epochs.push_back({wave.at("wave"), wave.at("epoch"),
                                wave.at("trials"), wave.at("train_seconds"),
                                wave.at("evaluate_seconds")});
    }
    outcome.seconds = json.at("seconds");
  } catch (const Json::exception& error) {
    return absl::DataLossError(error.what());
  }
  return absl::OkStatus();
}

SearchFolder::SearchFolder(const Config& config, const SearchRows& rows)
    : config_(config),
      train_rows_(rows.train),
      density_(rows.density),
      configuration_(SearchConfigToJson(config)),
      rows_({{"source", rows.source},
             {"train", rows.train},
             {"validation", rows.validation},
             {"density", rows.density}}) {}

std::string SearchFolder::Path(const std::string& name) const {
  return (fs::path(config_.out) / name).string();
}

absl::Status SearchFolder::Create() const {
  RETURN_IF_ERROR(CreateOutputDir(config_.out));
  return RemoveOld(/*drafts_alone=*/false);
}

absl::Status SearchFolder::RemoveOld(bool drafts_alone) const {
  std::vector<fs::path> old;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(config_.out, error)) {
    if (IsOurs(file.path().filename().string(), drafts_alone)) {
      old.push_back(file.path());
    }
  }
  std::string path = config_.out;
  for (auto next = old.begin(); !error && next != old.end(); ++next) {
    path = next->string();
    fs::remove_all(path, error);
  }
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot clear ", path, ": ", error.message()));
}

absl::Status SearchFolder::CheckSame(const std::string& before, const Json& was,
                                     const Json& is) const {
  for (const auto& [key, value] : is.items()) {
    if (std::find(std::begin(kOfTheRun), std::end(kOfTheRun), key) !=
        std::end(kOfTheRun)) {
      continue;
    }
    const Json old = was.value(key, Json());
    if (old == value) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--resume: want ", before, absl::StrReplaceAll(key, {{"_", "-"}}), " ",
        Show(old), " as in ", Path(kSearchFile), ", got ", Show(value)));
  }
  return absl::OkStatus();
}

absl::Status SearchFolder::Resume(SearchOutcome& outcome, KeptModels& models) {
  const std::string path = Path(kSearchFile);
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("--resume: want a search to go on with, got no ", path));
  }
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  for (const char* key : {"configuration", "rows"}) {
    if (json.is_object() && json.contains(key) && json[key].is_object()) {
      continue;
    }
    return absl::DataLossError(
        absl::StrCat(path, ": want an object with ", key, ", got another"));
  }
  RETURN_IF_ERROR(CheckSame("--", json["configuration"], configuration_));
  RETURN_IF_ERROR(CheckSame("rows: ", json["rows"], rows_));
  const absl::Status read = ReadOutcome(json, config_.epochs, outcome);
  if (!read.ok()) {
    return absl::Status(read.code(), absl::StrCat(path, ": ", read.message()));
  }
  const int64_t ended = BestTrial(outcome.results, config_.search.metric, true);
  if (ended >= 0) {
    RETURN_IF_ERROR(ReadKept(outcome.results[ended], models.ended));
  }
  ended_ = ended;
  return RemoveOld(/*drafts_alone=*/true);
}

absl::Status SearchFolder::ReadKept(const TrialResult& result,
                                    KeptModel& model) const {
  const Trial& trial = result.trial;
  ASSIGN_OR_RETURN(
      LoadedModel loaded,
      ReadModel(Path(absl::StrCat("trial-", trial.index, ".safetensors"))));
  if (loaded.model.widths != trial.model.widths) {
    return absl::DataLossError(absl::StrCat(
        loaded.path, ": want widths ", trial.model.ToString(), " of trial ",
        trial.index, ", got ", loaded.model.ToString()));
  }
  model = {trial.index, std::move(loaded.params)};
  return absl::OkStatus();
}

absl::Status SearchFolder::Update(const SearchOutcome& outcome,
                                  const KeptModels& models) {
  const int64_t ended = models.ended.trial;
  const int64_t best = models.best().trial;
  // The model before the file that says there is one.
  if (ended >= 0 && ended != ended_) {
    RETURN_IF_ERROR(
        WriteWeights(Path(absl::StrCat("trial-", ended, ".safetensors")),
                     outcome.results[ended], models.ended));
  }
  if (best >= 0 &&
      (best != best_ || outcome.results[best].epochs.size() != best_epochs_)) {
    RETURN_IF_ERROR(WriteBest(outcome, models.best()));
  }
  Json json = {{"configuration", configuration_}, {"rows", rows_}};
  json.update(SearchToJson(outcome));
  RETURN_IF_ERROR(ReplaceTextFile(Path(kSearchFile), JsonText(json, 1)));
  if (ended_ >= 0 && ended != ended_) {
    std::error_code ignored;  // it is only in nobody's way
    fs::remove(Path(absl::StrCat("trial-", ended_, ".safetensors")), ignored);
  }
  ended_ = ended;
  return absl::OkStatus();
}

absl::Status SearchFolder::Finish(const SearchOutcome& outcome,
                                  const KeptModels& models) {
  RETURN_IF_ERROR(Update(outcome, models));
  if (outcome.best < 0) {  // what was the best until it diverged
    std::error_code error;
    fs::remove_all(Path("best"), error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot clear ", Path("best"), ": ", error.message()));
    }
  }
  RETURN_IF_ERROR(ReplaceTextFile(Path("trials.csv"), SearchCsv(outcome)));
  return ReplaceTextFile(Path("search.html"),
                         SearchPage(outcome, configuration_));
}

absl::Status SearchFolder::WriteWeights(const std::string& path,
                                        const TrialResult& result,
                                        const KeptModel& model) const {
  const Trial& trial = result.trial;
  const int64_t epochs = static_cast<int64_t>(result.epochs.size());
  const int64_t steps = (train_rows_ + trial.batch - 1) / trial.batch;
  return WriteModel(path, trial.model, model.params,
                    {epochs, epochs * steps, trial.seed});
}

absl::Status SearchFolder::WriteBest(const SearchOutcome& outcome,
                                     const KeptModel& model) {
  const TrialResult& result = outcome.results[model.trial];
  std::error_code error;
  fs::create_directories(Path("best"), error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", Path("best"), ": ", error.message()));
  }
  RETURN_IF_ERROR(
      WriteWeights(Path(absl::StrCat("best/", kLastModelFile)), result, model));
  const Json config =
      ConfigToJson(ConfigOfTrial(config_, result.trial, density_));
  RETURN_IF_ERROR(
      ReplaceTextFile(Path("best/config.json"), JsonText(config, 2)));
  best_ = result.trial.index;
  best_epochs_ = result.epochs.size();
  return absl::OkStatus();
}

}  // namespace onestep
