// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/bundle_engine.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/cpu/team.h"
#include "trainer/data/nonzeros.h"
#include "trainer/data/split.h"
#include "trainer/search/block_schedule.h"
#include "trainer/search/bundle.h"
#include "trainer/search/bundle_program.h"
#include "trainer/search/program_pool.h"
#include "trainer/search/trial_input.h"
#include "trainer/search/way.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

// On the CPU long enough that the change of models costs nothing; on a GPU
// each block copies the weights.
constexpr double kBlockUs = 2e3;
constexpr double kGpuBlockUs = 50e3;
// Of the timing of a way, several of which are one after another.
constexpr double kRoundUs = 6e3;
constexpr double kGpuRoundUs = 50e3;
// Of one model on a GPU, whatever its size: what a launch takes.
constexpr double kGpuStepUs = 10;
// Two of the widest vectors; the weights of more models leave the caches.
constexpr int64_t kMostModels = 32;

CompileOptions ProgramOptions(const EngineOptions& options) {
  CompileOptions compile = options.compile;
  compile.sparse = {};
  // Libraries sum the products of many models in another order.
  compile.kernels = Kernels::kLoops;
  if (compile.device == Device::kCpu) {
    compile.dispatch = Dispatch::kSingle;
    compile.threads = 1;
    compile.affinity = {};  // the engine's workers have one
  }
  return compile;
}

class BundleEngine : public TrialEngine {
 public:
  BundleEngine(const EngineOptions& options, const Dataset& data,
               const RowPlan& plan, std::unique_ptr<Team> team)
      : options_(options),
        gpu_(options.compile.device == Device::kGpu),
        most_models_(gpu_ ? std::numeric_limits<int64_t>::max() / 2
                          : kMostModels),
        plan_(plan),
        team_(std::move(team)),
        density_(Density(data)),
        pool_(ProgramOptions(options), CountNonzeros(data), data, plan_,
              order_) {
    order_.validation.resize(plan.validation_rows);
    std::iota(order_.validation.begin(), order_.validation.end(),
              static_cast<int32_t>(plan.train_rows));
  }

  absl::Status Add(const Trial& trial) override;
  void Drop(int64_t index) override;
  absl::StatusOr<std::vector<EpochOutcome>> RunEpoch(int64_t epoch,
                                                     const Poll& poll) override;
  std::vector<Tensor>& Params(int64_t index) override;
  std::vector<GroupReport> Groups() const override { return groups_; }
  double train_seconds() const override { return train_seconds_; }
  double evaluate_seconds() const override { return evaluate_seconds_; }

 private:
  struct Placed {
    Bundle bundle;
    ProgramSet* programs;
  };

  void Ungroup();
  absl::Status Group(const Poll& poll);
  std::vector<Way> Ways(const std::vector<TrialState*>& trials) const;
  absl::StatusOr<WayChoice> Choose(const std::string& name,
                                   const std::vector<TrialState*>& trials,
                                   bool alone);
  absl::Status Place(const std::string& name,
                     const std::vector<TrialState*>& trials, bool alone);
  absl::Status RunPhase(bool train, BlockPoll poll, double& seconds);

  const EngineOptions options_;
  const bool gpu_;
  const int64_t most_models_;  // of a bundle
  const RowPlan plan_;
  const std::unique_ptr<Team> team_;
  const double density_;
  RowOrder order_;
  ProgramPool pool_;
  std::map<int64_t, TrialState> trials_;  // by index
  // Made once for all epochs: by the kind and the bits of its trials' number.
  std::map<std::pair<std::string, int>, WayChoice> choices_;
  std::vector<Placed> bundles_;  // of all trials; empty: to be made
  std::vector<GroupReport> groups_;
  double train_seconds_ = 0, evaluate_seconds_ = 0;
};

absl::Status BundleEngine::Add(const Trial& trial) {
  Ungroup();
  TrialState state{trial, {}, {}, 0};
  ASSIGN_OR_RETURN(state.params,
                   InitParams(trial.model, options_.init, trial.seed));
  ASSIGN_OR_RETURN(state.states,
                   InitOptimizerState(trial.model, trial.optimizer));
  CHECK(trials_.emplace(trial.index, std::move(state)).second);
  return absl::OkStatus();
}

void BundleEngine::Drop(int64_t index) {
  Ungroup();
  CHECK(trials_.erase(index) == 1);
}

std::vector<Tensor>& BundleEngine::Params(int64_t index) {
  for (Placed& placed : bundles_) placed.bundle.GiveBack();
  return trials_.at(index).params;
}

void BundleEngine::Ungroup() {
  for (Placed& placed : bundles_) placed.bundle.GiveBack();
  bundles_.clear();
}

// The likely one first.
std::vector<Way> BundleEngine::Ways(
    const std::vector<TrialState*>& trials) const {
  std::vector<bool> vectors = {false};
  if (options_.grouping == Grouping::kVector) {
    vectors = {true};
  } else if (options_.grouping == Grouping::kAuto && trials.size() > 1) {
    int64_t bytes = 0;
    for (const Tensor& param : trials[0]->params) bytes += param.data.bytes();
    const bool likely = gpu_ || LikelyVector(bytes);
    vectors = {likely, !likely};
  }
  const bool sparse = WalksNonzeros(options_.input, trials[0]->trial.model,
                                    density_, options_.compile);
  std::vector<Way> ways;
  for (const bool vector : vectors) ways.push_back({vector, sparse});
  return ways;
}

// Timed only where that takes no longer than an epoch.
absl::StatusOr<WayChoice> BundleEngine::Choose(
    const std::string& name, const std::vector<TrialState*>& trials,
    bool alone) {
  const std::pair<std::string, int> key = {name, std::bit_width(trials.size())};
  const auto found = choices_.find(key);
  if (found != choices_.end()) return found->second;
  const Trial& trial = trials[0]->trial;
  const std::vector<Way> ways = Ways(trials);
  const double round_us = gpu_ ? kGpuRoundUs : kRoundUs;
  const double steps = static_cast<double>(std::ssize(trials) *
                                           plan_.StepsPerEpoch(trial.batch));
  const double epoch_us =
      steps / team_->workers() * (gpu_ ? kGpuStepUs : EstimatedStepUs(trial));
  const bool timed = epoch_us >= TimingUs(round_us, std::ssize(ways));
  const WayTiming timing = {
      pool_, *team_, plan_, most_models_, timed ? round_us : 0, alone};
  ASSIGN_OR_RETURN(WayChoice choice, ChooseWay(timing, ways, trials));
  return choices_[key] = std::move(choice);
}

// Makes the bundles of a kind.
absl::Status BundleEngine::Place(const std::string& name,
                                 const std::vector<TrialState*>& trials,
                                 bool alone) {
  ASSIGN_OR_RETURN(const WayChoice choice, Choose(name, trials, alone));
  const int64_t count = std::ssize(trials);
  const std::vector<int64_t> sizes =
      BundleSizes(choice.way, count, team_->workers(), most_models_);
  auto next = trials.begin();
  for (const int64_t size : sizes) {
    const std::vector<TrialState*> members(next, next + size);
    next += size;
    ASSIGN_OR_RETURN(ProgramSet* const programs,
                     pool_.Get(members[0]->trial, size, choice.way.sparse));
    ASSIGN_OR_RETURN(
        Bundle bundle,
        Bundle::Create(plan_, members, programs->program().models_innermost()));
    bundles_.push_back({std::move(bundle), programs});
  }
  GroupReport report;
  report.name = name;
  report.kind = absl::StrCat(name, choice.way.sparse ? ", sparse input" : "");
  report.sparse = choice.way.sparse;
  report.trials = count;
  report.way = choice.way.vector ? "vector" : "loop";
  report.programs = std::ssize(sizes);
  report.vector_us = choice.vector_us;
  report.loop_us = choice.loop_us;
  report.lowering =
      bundles_.back().programs->program().step().executable->lowering();
  report.refused = choice.refused;
  groups_.push_back(std::move(report));
  return absl::OkStatus();
}

absl::Status BundleEngine::Group(const Poll& poll) {
  groups_.clear();
  // In the order in which their first trials come.
  std::vector<std::pair<std::string, std::vector<TrialState*>>> kinds;
  int64_t steps = 0;
  for (auto& [index, state] : trials_) {
    const std::string name = KindOf(state.trial);
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const auto& k) { return k.first == name; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {name, {}});
    kind->second.push_back(&state);
    steps += plan_.StepsPerEpoch(state.trial.batch);
  }
  std::set<std::string> names;
  for (const auto& kind : kinds) names.insert(kind.first);
  pool_.KeepKinds(names);
  for (const auto& [name, trials] : kinds) {
    if (!poll(0, steps)) return absl::CancelledError("stopped");
    RETURN_IF_ERROR(Place(name, trials, kinds.size() == 1));
  }
  return absl::OkStatus();
}

absl::Status BundleEngine::RunPhase(bool train, BlockPoll poll,
                                    double& seconds) {
  const Clock::time_point start = Clock::now();
  std::vector<BlockItem> items;
  for (const Placed& placed : bundles_) {
    const Bundle& bundle = placed.bundle;
    const bool all_diverged =
        std::all_of(bundle.trials().begin(), bundle.trials().end(),
                    [](const TrialState* t) { return t->diverged_step > 0; });
    const int64_t steps = plan_.StepsPerEpoch(bundle.trials()[0]->trial.batch);
    items.push_back(
        {all_diverged ? 0
         : train      ? steps
                      : plan_.Chunks(),
         bundle.models(),
         train ? placed.programs->step_us : placed.programs->chunk_us});
  }
  const auto run = [&](int, const Block& block) -> absl::StatusOr<bool> {
    Placed& placed = bundles_[block.item];
    ASSIGN_OR_RETURN(const ProgramSet::Lease program, placed.programs->Take());
    if (!train) {
      RETURN_IF_ERROR(
          program->Evaluate(placed.bundle, block.first, block.count));
      return true;
    }
    RETURN_IF_ERROR(program->Train(placed.bundle, block.first, block.count));
    return placed.bundle.NoteDiverged(block.first, block.count);
  };
  RETURN_IF_ERROR(
      RunBlocks(*team_, gpu_ ? kGpuBlockUs : kBlockUs, items, run, poll));
  for (size_t i = 0; i < items.size(); ++i) {
    ProgramSet& programs = *bundles_[i].programs;
    (train ? programs.step_us : programs.chunk_us) = items[i].unit_us;
  }
  seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EpochOutcome>> BundleEngine::RunEpoch(
    int64_t epoch, const Poll& poll) {
  order_.train = EpochOrder(plan_.train_rows, options_.shuffle_seed, epoch - 1);
  if (bundles_.empty()) RETURN_IF_ERROR(Group(poll));
  for (Placed& placed : bundles_) placed.bundle.StartEpoch(epoch);
  int64_t steps = 0;
  const auto train_poll = [&](int64_t done, int64_t of) {
    steps = of;
    return poll(done, of);
  };
  const auto evaluate_poll = [&](int64_t, int64_t) {
    return poll(steps, steps);
  };
  RETURN_IF_ERROR(RunPhase(/*train=*/true, train_poll, train_seconds_));
  RETURN_IF_ERROR(RunPhase(/*train=*/false, evaluate_poll, evaluate_seconds_));
  std::vector<EpochOutcome> outcomes;
  for (Placed& placed : bundles_) {
    for (int64_t lane = 0; lane < placed.bundle.models(); ++lane) {
      const TrialState& state = *placed.bundle.trials()[lane];
      const TrialEpoch summary = placed.bundle.Summarize(lane);
      outcomes.push_back({state.trial.index, summary, state.diverged_step});
    }
  }
  std::sort(outcomes.begin(), outcomes.end(),
            [](const EpochOutcome& a, const EpochOutcome& b) {
              return a.index < b.index;
            });
  return outcomes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrialEngine>> CreateBundleEngine(
    const EngineOptions& options, const Dataset& data, int64_t train_rows,
    int64_t rows) {
  CHECK(train_rows > 0 && rows >= train_rows && options.workers >= 1);
  const bool gpu = options.compile.device == Device::kGpu;
  if (gpu && options.input == InputMode::kSparse) {
    return absl::UnimplementedError("--input sparse on --device gpu");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Team> team,
                   Team::Create(gpu ? 1 : options.workers,
                                gpu ? Affinity{} : options.compile.affinity));
  const RowPlan plan = {train_rows, rows - train_rows, options.epochs,
                        options.lr_schedule, options.warmup};
  return std::make_unique<BundleEngine>(options, data, plan, std::move(team));
}

}  // namespace onestep
