// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "trainer/available_memory.h"
#include "trainer/commands/commands.h"
#include "trainer/data/nonzeros.h"
#include "trainer/evaluate.h"
#include "trainer/interrupt.h"
#include "trainer/json_text.h"
#include "trainer/load_data.h"
#include "trainer/output_dir.h"
#include "trainer/search/bundle_engine.h"
#include "trainer/search/search_file.h"
#include "trainer/search/search_progress.h"
#include "trainer/search/search_report.h"
#include "trainer/search/trial_config.h"
#include "trainer/version.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// Each worker one full bundle: more side by side would train no faster, and
// more of it would be lost when the search is stopped.
int64_t DefaultParallel(const CompileOptions& compile) {
  constexpr int64_t kOfAWorker = 16, kLeast = 32, kOfAGpu = 128;
  if (compile.device == Device::kGpu) return kOfAGpu;
  return std::max<int64_t>(kLeast, kOfAWorker * compile.threads);
}

// Weights and what the optimizer keeps for them.
int64_t StateBytes(const Trial& trial) {
  const int64_t values =
      1 + std::ssize(OptimizerOf(trial.optimizer.kind).states);
  return values * trial.model.num_parameters() *
         static_cast<int64_t>(sizeof(float));
}

class SearchCommand : public SearchWatcher {
 public:
  SearchCommand(const Config& config, Console& console)
      : config_(config), console_(console), data_flag_(config.data) {}

  absl::Status Run();

  bool OnSteps(const SearchOutcome& so_far, int64_t steps,
               int64_t of) override {
    progress_->Update(so_far, steps, of);
    return PendingSignal() == 0;
  }
  absl::Status OnEpoch(const SearchOutcome& so_far,
                       const KeptModels& models) override;

 private:
  absl::Status MakeTrials();
  absl::StatusOr<std::unique_ptr<TrialEngine>> CreateEngine();
  absl::Status OpenFolder();
  int64_t WaveBytes() const;
  void PrintPlan();
  absl::Status TestBest(const SearchOutcome& outcome);
  absl::Status Report(const SearchOutcome& outcome);
  absl::Status StatusOf(const SearchOutcome& outcome) const;
  int64_t Waiting() const;

  Config config_;
  Console& console_;
  const std::string data_flag_;
  TrainingData data_;
  double density_ = 0;  // of the train rows' values, those that are not 0
  SearchOptions options_;
  SearchOutcome earlier_;  // what this run begins with
  std::optional<SearchFolder> folder_;
  std::optional<SearchProgress> progress_;
  KeptModels models_;
  std::optional<EvalResult> test_;
  int64_t written_ns_ = 0;  // when the folder was
};

absl::Status SearchCommand::Run() {
  if (!config_.out.empty() && !config_.search.resume) {
    RETURN_IF_ERROR(CheckOutputDir(config_.out, config_.force));
  }
  ASSIGN_OR_RETURN(data_, LoadTrainingData(config_));
  density_ = Density(data_.train);
  const Split& split = data_.split;
  if (split.validation_rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--validation: want a row of ", data_.train.rows,
                     " for validation, got ", config_.validation));
  }
  RETURN_IF_ERROR(MakeTrials());
  const SearchConfig& search = config_.search;
  options_.epochs = config_.epochs;
  options_.parallel =
      search.parallel > 0 ? search.parallel : DefaultParallel(config_.compile);
  options_.metric = search.metric;
  options_.time_limit = search.time_limit;
  if (search.early_stop == EarlyStop::kAsha) {
    options_.asha =
        AshaOptions{search.asha_eta, search.asha_min_epochs, search.metric};
  }
  RETURN_IF_ERROR(OpenFolder());
  RETURN_IF_ERROR(CheckMemory(
      absl::StrCat("--parallel ", options_.parallel, ": the weights"),
      2 * WaveBytes()));
  if (!config_.json) PrintPlan();

  ASSIGN_OR_RETURN(const std::unique_ptr<TrialEngine> engine, CreateEngine());
  CatchSignals();
  const int64_t waves =
      earlier_.epochs.empty() ? 0 : earlier_.epochs.back().wave;
  progress_.emplace(
      waves + (Waiting() + options_.parallel - 1) / options_.parallel,
      config_.epochs);
  const absl::StatusOr<SearchOutcome> outcome =
      RunTrials(options_, std::move(earlier_), *engine, *this, models_);
  progress_->Clear();
  RETURN_IF_ERROR(outcome.status());
  if (folder_) RETURN_IF_ERROR(folder_->Finish(*outcome, models_));
  if (PendingSignal() == 0) RETURN_IF_ERROR(TestBest(*outcome));
  RETURN_IF_ERROR(Report(*outcome));
  return StatusOf(*outcome);
}

absl::Status SearchCommand::MakeTrials() {
  Trial base;
  base.model = config_.model;
  base.model.widths = {config_.model.features(), config_.model.classes()};
  base.optimizer.nesterov = config_.optimizer.nesterov;
  base.seed = config_.seed;
  const SearchConfig& search = config_.search;
  ASSIGN_OR_RETURN(const std::vector<Trial> trials,
                   search.sample == Sample::kGrid
                       ? GridTrials(search.space, base, search.trials)
                       : DrawTrials(search.space, base, search.trials));
  for (const Trial& trial : trials) {
    earlier_.results.emplace_back().trial = trial;
  }
  return absl::OkStatus();
}

absl::Status SearchCommand::OpenFolder() {
  if (config_.out.empty()) return absl::OkStatus();
  const Split& split = data_.split;
  folder_.emplace(config_, SearchRows{data_.train.source, split.train_rows,
                                      split.validation_rows, density_});
  return config_.search.resume ? folder_->Resume(earlier_, models_)
                               : folder_->Create();
}

absl::StatusOr<std::unique_ptr<TrialEngine>> SearchCommand::CreateEngine() {
  EngineOptions options;
  options.compile = config_.compile;
  options.workers = config_.compile.threads;
  options.grouping = config_.search.group;
  options.input = config_.input;
  options.init = config_.init;
  options.lr_schedule = config_.lr_schedule;
  options.warmup = config_.warmup;
  options.epochs = config_.epochs;
  options.shuffle_seed = config_.shuffle_seed.value_or(config_.seed);
  const Split& split = data_.split;
  return CreateBundleEngine(options, data_.train, split.train_rows,
                            split.train_rows + split.validation_rows);
}

int64_t SearchCommand::Waiting() const {
  return std::count_if(earlier_.results.begin(), earlier_.results.end(),
                       std::not_fn(HasEnded));
}

// Of the largest wave. Trials that share their steps have a copy there.
int64_t SearchCommand::WaveBytes() const {
  int64_t most = 0;
  const int64_t trials = std::ssize(earlier_.results);
  for (int64_t first = 0; first < trials; first += options_.parallel) {
    int64_t bytes = 0;
    const int64_t end = std::min(trials, first + options_.parallel);
    for (int64_t i = first; i < end; ++i) {
      bytes += StateBytes(earlier_.results[i].trial);
    }
    most = std::max(most, bytes);
  }
  return most;
}

void SearchCommand::PrintPlan() {
  const int64_t trials = std::ssize(earlier_.results);
  Json flags = SearchConfigToJson(config_);
  flags.erase("command");
  const int64_t waiting = Waiting();
  console_.Print(absl::StrFormat(
      "onestep %s\n%s  %-13s %d train, %d validation, %d test\n"
      "%d %s%s, up to %d side by side, %d %s each: %.1f MiB of weights "
      "and optimizer state, %.1f MiB of rows\n",
      Version(), FlagTable(flags), "rows", data_.split.train_rows,
      data_.split.validation_rows, data_.test.rows, trials,
      trials == 1 ? "trial" : "trials",
      waiting == trials ? "" : absl::StrCat(", ", waiting, " of them left"),
      options_.parallel, config_.epochs,
      config_.epochs == 1 ? "epoch" : "epochs", MiB(WaveBytes()),
      MiB(static_cast<int64_t>(data_.train.images.size()))));
  console_.Flush();
}

// At most each second: of many short epochs little is lost.
absl::Status SearchCommand::OnEpoch(const SearchOutcome& so_far,
                                    const KeptModels& models) {
  progress_->EndEpoch(so_far);
  if (!folder_) return absl::OkStatus();
  constexpr int64_t kSecond = 1'000'000'000;
  if (written_ns_ > 0 && NowNs() - written_ns_ < kSecond) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(folder_->Update(so_far, models));
  written_ns_ = NowNs();
  return absl::OkStatus();
}

absl::Status SearchCommand::TestBest(const SearchOutcome& outcome) {
  if (outcome.best < 0) return absl::OkStatus();
  const Config config =
      ConfigOfTrial(config_, outcome.results[outcome.best].trial, density_);
  CompileOptions compile = config.compile;
  compile.dispatch =
      compile.device == Device::kGpu ? Dispatch::kGraph : Dispatch::kOps;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Evaluator> evaluator,
      Evaluator::Create(config.model, compile, data_.test,
                        models_.best().params, {0, data_.test.rows}));
  ASSIGN_OR_RETURN(test_, evaluator->Run());
  return absl::OkStatus();
}

absl::Status SearchCommand::Report(const SearchOutcome& outcome) {
  std::string command;
  if (outcome.best >= 0) {
    command = TrainCommandLine(
        ConfigOfTrial(config_, outcome.results[outcome.best].trial, density_),
        data_flag_);
  }
  if (config_.json) {
    Json json = {{"configuration", SearchConfigToJson(config_)}};
    json.update(SearchToJson(outcome));
    json["test_accuracy"] = test_ ? Json(test_->accuracy) : Json();
    json["test_loss"] = test_ ? Json(test_->loss) : Json();
    json["best_alone"] = command.empty() ? Json() : Json(command);
    for (size_t i = 0; i < outcome.results.size(); ++i) {
      json["trials"][i]["alone"] = TrainCommandLine(
          ConfigOfTrial(config_, outcome.results[i].trial, density_),
          data_flag_);
    }
    console_.Print(absl::StrCat(JsonText(json, 2), "\n"));
    return absl::OkStatus();
  }
  console_.Print(absl::StrCat("\n", SearchTable(outcome)));
  if (test_) {
    console_.Print(
        absl::StrFormat("the best's test accuracy %.4f, loss %.4f (%d rows)\n",
                        test_->accuracy, test_->loss, test_->rows));
  }
  if (!command.empty()) {
    const TrialResult& best = outcome.results[outcome.best];
    const bool whole = best.status == TrialStatus::kFinished;
    console_.Print(absl::StrCat(
        "the best alone",
        whole ? "" : absl::StrCat(", as far as epoch ", best.epochs.size()),
        ": ", command, "\n"));
  }
  return absl::OkStatus();
}

absl::Status SearchCommand::StatusOf(const SearchOutcome& outcome) const {
  const size_t trials = outcome.results.size();
  const size_t ended =
      std::count_if(outcome.results.begin(), outcome.results.end(), HasEnded);
  if (PendingSignal() != 0 && ended < trials) {
    return absl::CancelledError(absl::StrCat(
        PendingSignal() == SIGTERM ? "terminated by SIGTERM"
                                   : "interrupted by SIGINT",
        " after ", ended, " of ", trials, trials == 1 ? " trial" : " trials",
        config_.out.empty() ? "" : "; --resume goes on"));
  }
  if (outcome.best >= 0) return absl::OkStatus();
  if (ended == trials) {
    return absl::OutOfRangeError(absl::StrCat(
        "diverged: no finite loss in any of ", trials,
        trials == 1 ? " trial" : " trials", "; a lower --lr may help"));
  }
  return absl::UnavailableError(
      absl::StrFormat("--time-limit: want the time of an epoch, got %g s",
                      options_.time_limit));
}

}  // namespace

absl::Status RunSearch(const Config& config, Console& console) {
  return SearchCommand(config, console).Run();
}

}  // namespace onestep
