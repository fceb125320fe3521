// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "trainer/search/bundle.h"

namespace onestep {
namespace {

absl::Status Keep(int64_t trial, const std::vector<Tensor>& params,
                  KeptModel& kept) {
  kept.params.clear();
  for (const Tensor& param : params) {
    Tensor& copy = kept.params.emplace_back(param.name, param.dims, Buffer());
    ASSIGN_OR_RETURN(copy.data, Buffer::Create(param.data.bytes()));
    std::memcpy(copy.data.data(), param.data.data(), param.data.bytes());
  }
  kept.trial = trial;
  return absl::OkStatus();
}

// One more wave's groups, those of a kind that runs alike in one row.
void Merge(const std::vector<GroupReport>& more,
           std::vector<GroupReport>& groups) {
  for (const GroupReport& group : more) {
    const auto same = std::find_if(
        groups.begin(), groups.end(), [&group](const GroupReport& other) {
          return other.kind == group.kind && other.way == group.way;
        });
    if (same == groups.end()) {
      groups.push_back(group);
    } else {
      same->trials += group.trials;
    }
  }
}

// A trial that was broken off, and so is counted again.
void TakeOut(const Trial& trial, std::vector<GroupReport>& groups) {
  const std::string kind = KindOf(trial);
  const auto group = std::find_if(
      groups.begin(), groups.end(),
      [&kind](const GroupReport& group) { return group.name == kind; });
  if (group != groups.end() && --group->trials == 0) groups.erase(group);
}

class Search {
 public:
  Search(const SearchOptions& options, SearchOutcome earlier,
         TrialEngine& engine, SearchWatcher& watcher, KeptModels& models)
      : options_(options),
        engine_(engine),
        watcher_(watcher),
        models_(models),
        earlier_seconds_(earlier.seconds),
        outcome_(std::move(earlier)) {}

  absl::StatusOr<SearchOutcome> Run();

 private:
  absl::Status RunWave(int64_t wave, const std::vector<int64_t>& trials);
  absl::Status RunEpoch(int64_t wave, int64_t epoch);
  void Record(const std::vector<EpochOutcome>& outcomes);
  void EndTrials(int64_t epoch);
  absl::Status KeepModels();
  void DropEnded();
  bool IsOver();
  bool Poll(int64_t steps, int64_t of);
  // Of this run.
  double Seconds() const {
    return static_cast<double>(NowNs() - begin_ns_) * 1e-9;
  }
  TrialResult& Result(int64_t index) { return outcome_.results[index]; }

  const SearchOptions options_;
  TrialEngine& engine_;
  SearchWatcher& watcher_;
  KeptModels& models_;
  const int64_t begin_ns_ = NowNs();
  const double earlier_seconds_;
  SearchOutcome outcome_;
  std::vector<int64_t> running_;  // of the wave
};

absl::StatusOr<SearchOutcome> Search::Run() {
  std::vector<int64_t> waiting;
  std::vector<Trial> trials;
  for (TrialResult& result : outcome_.results) {
    trials.push_back(result.trial);
    if (HasEnded(result)) {
      ++outcome_.resumed;
    } else {
      waiting.push_back(result.trial.index);
      if (!result.epochs.empty()) TakeOut(result.trial, outcome_.groups);
      result = {result.trial, TrialStatus::kWaiting, {}, 0};
    }
  }
  outcome_.ended.clear();
  outcome_.varied = VariedFlags(trials);
  outcome_.by_accuracy = options_.metric == SearchMetric::kAccuracy;
  outcome_.best = BestTrial(outcome_.results, options_.metric, true);
  int64_t wave = outcome_.epochs.empty() ? 0 : outcome_.epochs.back().wave;
  for (size_t first = 0; first < waiting.size() && outcome_.ended.empty();
       first += options_.parallel) {
    const size_t end = std::min(waiting.size(), first + options_.parallel);
    RETURN_IF_ERROR(
        RunWave(++wave, {waiting.begin() + first, waiting.begin() + end}));
  }
  outcome_.seconds = earlier_seconds_ + Seconds();
  return std::move(outcome_);
}

absl::Status Search::RunWave(int64_t wave, const std::vector<int64_t>& trials) {
  if (IsOver()) return absl::OkStatus();
  running_.clear();
  for (const int64_t index : trials) {
    RETURN_IF_ERROR(engine_.Add(Result(index).trial));
    Result(index).status = TrialStatus::kTraining;
    running_.push_back(index);
    if (!Poll(0, 1)) break;  // large weights take a while to draw
  }
  for (int64_t epoch = 1; !running_.empty() && !IsOver(); ++epoch) {
    const absl::Status status = RunEpoch(wave, epoch);
    if (absl::IsCancelled(status) && IsOver()) break;
    RETURN_IF_ERROR(status);
  }
  for (const int64_t index : running_) engine_.Drop(index);
  return absl::OkStatus();
}

// False: it is over.
bool Search::Poll(int64_t steps, int64_t of) {
  if (!IsOver() && !watcher_.OnSteps(outcome_, steps, of)) {
    outcome_.ended = "interrupted";
  }
  return !IsOver();
}

absl::Status Search::RunEpoch(int64_t wave, int64_t epoch) {
  const auto poll = [this](int64_t steps, int64_t of) {
    return Poll(steps, of);
  };
  ASSIGN_OR_RETURN(const std::vector<EpochOutcome> outcomes,
                   engine_.RunEpoch(epoch, poll));
  outcome_.epochs.push_back({wave, epoch, static_cast<int64_t>(running_.size()),
                             engine_.train_seconds(),
                             engine_.evaluate_seconds()});
  if (epoch == 1) Merge(engine_.Groups(), outcome_.groups);
  Record(outcomes);
  EndTrials(epoch);
  RETURN_IF_ERROR(KeepModels());
  DropEnded();
  outcome_.seconds = earlier_seconds_ + Seconds();
  return watcher_.OnEpoch(outcome_, models_);
}

void Search::Record(const std::vector<EpochOutcome>& outcomes) {
  for (const EpochOutcome& outcome : outcomes) {
    TrialResult& result = Result(outcome.index);
    if (outcome.diverged_step > 0) {
      result.status = TrialStatus::kDiverged;
      result.diverged_step = outcome.diverged_step;
    } else {
      result.epochs.push_back(outcome.epoch);
    }
  }
}

void Search::EndTrials(int64_t epoch) {
  for (const int64_t index : running_) {
    TrialResult& result = Result(index);
    if (result.status == TrialStatus::kDiverged) continue;
    if (epoch == options_.epochs) {
      result.status = TrialStatus::kFinished;
    } else if (options_.asha && IsRung(*options_.asha, epoch) &&
               !GoesOn(*options_.asha, outcome_.results, index, epoch)) {
      result.status = TrialStatus::kStopped;
    }
  }
}

// Before those that ended are dropped: a new best one among them ended now.
absl::Status Search::KeepModels() {
  outcome_.best = BestTrial(outcome_.results, options_.metric, false);
  const int64_t ended = BestTrial(outcome_.results, options_.metric, true);
  if (ended != models_.ended.trial) {
    RETURN_IF_ERROR(Keep(ended, engine_.Params(ended), models_.ended));
  }
  models_.training.trial = -1;
  if (outcome_.best == ended) return absl::OkStatus();
  return Keep(outcome_.best, engine_.Params(outcome_.best), models_.training);
}

void Search::DropEnded() {
  std::vector<int64_t> left;
  for (const int64_t index : running_) {
    if (HasEnded(Result(index))) {
      engine_.Drop(index);
    } else {
      left.push_back(index);
    }
  }
  running_ = std::move(left);
}

bool Search::IsOver() {
  if (outcome_.ended.empty() && options_.time_limit > 0 &&
      Seconds() > options_.time_limit) {
    outcome_.ended = "time limit";
  }
  return !outcome_.ended.empty();
}

}  // namespace

bool HasEnded(const TrialResult& result) {
  return result.status == TrialStatus::kFinished ||
         result.status == TrialStatus::kStopped ||
         result.status == TrialStatus::kDiverged;
}

int64_t BestTrial(const std::vector<TrialResult>& results, SearchMetric metric,
                  bool ended_alone) {
  int64_t best = -1;
  for (const TrialResult& result : results) {
    if (result.status == TrialStatus::kDiverged || result.epochs.empty() ||
        !std::isfinite(result.epochs.back().validation_loss) ||
        (ended_alone && !HasEnded(result))) {
      continue;
    }
    if (best < 0 || ScoreOf(result.epochs.back(), metric) <
                        ScoreOf(results[best].epochs.back(), metric)) {
      best = result.trial.index;
    }
  }
  return best;
}

absl::StatusOr<SearchOutcome> RunTrials(const SearchOptions& options,
                                        SearchOutcome earlier,
                                        TrialEngine& engine,
                                        SearchWatcher& watcher,
                                        KeptModels& models) {
  return Search(options, std::move(earlier), engine, watcher, models).Run();
}

}  // namespace onestep
