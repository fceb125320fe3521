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
#include "runtime/status.h"
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

// What `json` says of the trial. Throws what nlohmann throws.
absl::Status ReadResult(const Json& json, TrialResult& result) {
  for (const std::string& column : TrialColumns()) {
    const Json want = ColumnValue(result.trial, column);
    const Json& got = json.at(ColumnKey(column));
    if (got != want) {
      return absl::DataLossError(absl::StrCat("trial ", result.trial.index,
                                              ": want ", column, " ",
                                              Show(want), ", got ", Show(got)));
    }
  }
  const Json& name = json.at("status");
  for (const TrialStatus status :
       {TrialStatus::kFinished, TrialStatus::kStopped, TrialStatus::kDiverged,
        TrialStatus::kTraining, TrialStatus::kWaiting}) {
    result.status = status;
    if (name == StatusName(result)) break;
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
  const bool trained = result.status == TrialStatus::kFinished ||
                       result.status == TrialStatus::kStopped;
  if ((trained && result.epochs.empty()) ||
      (result.status == TrialStatus::kDiverged) != (result.diverged_step > 0)) {
    return absl::DataLossError(absl::StrCat(
        "trial ", result.trial.index, ": ", StatusName(result), " after ",
        result.epochs.size(), " epochs, diverged_step ", result.diverged_step));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadResults(const Json& trials,
                         std::vector<TrialResult>& results) {
  if (!trials.is_array() || trials.size() != results.size()) {
    return absl::DataLossError(
        absl::StrCat("want ", results.size(), " trials, got ", trials.size()));
  }
  try {
    for (size_t i = 0; i < results.size(); ++i) {
      RETURN_IF_ERROR(ReadResult(trials[i], results[i]));
    }
  } catch (const Json::exception& error) {
    return absl::DataLossError(error.what());
  }
  return absl::OkStatus();
}

SearchFolder::SearchFolder(const Config& config, int64_t train_rows)
    : config_(config),
      train_rows_(train_rows),
      configuration_(SearchConfigToJson(config)) {}

std::string SearchFolder::Path(const std::string& name) const {
  return (fs::path(config_.out) / name).string();
}

absl::Status SearchFolder::Create() const {
  RETURN_IF_ERROR(CreateOutputDir(config_.out));
  std::vector<fs::path> old = {Path(kSearchFile), Path("best"),
                               Path("trials.csv"), Path("search.html")};
  std::error_code error;
  for (const auto& file : fs::directory_iterator(config_.out, error)) {
    const std::string name = file.path().filename().string();
    if (absl::StartsWith(name, "trial-") &&
        absl::EndsWith(name, ".safetensors")) {
      old.push_back(file.path());
    }
  }
  for (const fs::path& path : old) {
    if (!error) fs::remove_all(path, error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot remove ", path.string(), ": ", error.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status SearchFolder::CheckConfiguration(const Json& was) const {
  for (const auto& [key, value] : configuration_.items()) {
    if (std::find(std::begin(kOfTheRun), std::end(kOfTheRun), key) !=
        std::end(kOfTheRun)) {
      continue;
    }
    const Json before = was.value(key, Json());
    if (before == value) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--resume: want --", absl::StrReplaceAll(key, {{"_", "-"}}), " ",
        Show(before), " as in ", Path(kSearchFile), ", got ", Show(value)));
  }
  return absl::OkStatus();
}

absl::Status SearchFolder::Resume(std::vector<TrialResult>& results,
                                  KeptModels& models) {
  const std::string path = Path(kSearchFile);
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("--resume: want a search to go on with, got no ", path));
  }
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("configuration") ||
      !json["configuration"].is_object() || !json.contains("trials")) {
    return absl::DataLossError(absl::StrCat(
        path, ": want an object with configuration and trials, got another"));
  }
  RETURN_IF_ERROR(CheckConfiguration(json["configuration"]));
  const absl::Status read = ReadResults(json["trials"], results);
  if (!read.ok()) {
    return absl::Status(read.code(), absl::StrCat(path, ": ", read.message()));
  }
  const int64_t ended = BestTrial(results, config_.search.metric, true);
  if (ended < 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      LoadedModel model,
      ReadModel(Path(absl::StrCat("trial-", ended, ".safetensors"))));
  models.ended = {ended, std::move(model.params)};
  ended_ = ended;
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
  Json json = {{"configuration", configuration_}};
  json.update(SearchToJson(outcome));
  RETURN_IF_ERROR(ReplaceTextFile(Path(kSearchFile), json.dump(1)));
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
      ConfigToJson(ConfigOfTrial(config_, result.trial, outcome.groups));
  RETURN_IF_ERROR(ReplaceTextFile(Path("best/config.json"), config.dump(2)));
  best_ = result.trial.index;
  best_epochs_ = result.epochs.size();
  return absl::OkStatus();
}

}  // namespace onestep
