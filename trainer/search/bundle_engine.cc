// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/bundle_engine.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/cpu_info.h"
#include "runtime/status.h"
#include "runtime/team.h"
#include "trainer/autotune.h"
#include "trainer/cache.h"
#include "trainer/data/nonzeros.h"
#include "trainer/data/split.h"
#include "trainer/search/block_schedule.h"
#include "trainer/search/bundle.h"
#include "trainer/search/bundle_program.h"
#include "trainer/search/program_pool.h"
#include "trainer/search/way.h"
#include "trainer/version.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

// On the CPU long enough that the change of models costs nothing; on a GPU
// each block copies the weights.
constexpr double kBlockUs = 2e3;
constexpr double kGpuBlockUs = 50e3;
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
  struct Kind {
    int64_t timed_trials = 0;  // 0: no way was chosen
    WayChoice choice;
  };
  struct Placed {
    Bundle bundle;
    ProgramSet* programs;
  };

  void Ungroup();
  absl::Status Group(const Poll& poll);
  std::string InputKey(const std::string& name) const;
  std::vector<bool> Inputs(const std::string& name, const Kind& kind) const;
  std::vector<Way> Ways(const std::vector<bool>& inputs, int64_t trials) const;
  absl::Status Place(const std::string& name, Kind& kind,
                     const std::vector<TrialState*>& trials, bool alone);
  absl::Status RunPhase(bool train, BlockPoll poll, double& seconds);

  const EngineOptions options_;
  const bool gpu_;
  const RowPlan plan_;
  const std::unique_ptr<Team> team_;
  const double density_;
  RowOrder order_;
  ProgramPool pool_;
  Cache cache_{"auto.json", "the choice of auto"};
  std::map<int64_t, TrialState> trials_;  // by index
  std::map<std::string, Kind> kinds_;
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

// What the choice of an input is for. Neither workers nor grouping: a trial's
// bits are not to depend on them.
std::string BundleEngine::InputKey(const std::string& name) const {
  nlohmann::ordered_json json;
  json["version"] = Version();
  json["cpu"] = CpuModelName();
  json["cores"] = DefaultThreads();
  json["search"] = name;
  json["density"] = absl::StrFormat("%.3f", density_);
  json["disable_pass"] = options_.compile.disabled_passes;
  return json.dump();
}

// Those to choose from, by whether they are sparse. The choice is kept, here
// and for later searches, as it shows in a trial's bits.
std::vector<bool> BundleEngine::Inputs(const std::string& name,
                                       const Kind& kind) const {
  if (kind.timed_trials > 0) return {kind.choice.way.sparse};
  if (options_.input != InputMode::kAuto) {
    return {options_.input == InputMode::kSparse};
  }
  const auto known = options_.inputs.find(name);
  if (known != options_.inputs.end()) return {known->second};
  if (gpu_ || !options_.compile.fuse || density_ >= kSparseDensity) {
    return {false};
  }
  const nlohmann::ordered_json kept = cache_.Get(InputKey(name));
  if (kept.is_boolean()) return {kept.get<bool>()};
  return {false, true};
}

std::vector<Way> BundleEngine::Ways(const std::vector<bool>& inputs,
                                    int64_t trials) const {
  std::vector<Way> ways;
  for (const bool sparse : inputs) {
    if (options_.grouping != Grouping::kVector) ways.push_back({false, sparse});
    if (options_.grouping == Grouping::kVector ||
        (options_.grouping == Grouping::kAuto && trials > 1)) {
      ways.push_back({true, sparse});
    }
  }
  return ways;
}

// Chooses the way of a kind where that is to be done, and makes its bundles.
absl::Status BundleEngine::Place(const std::string& name, Kind& kind,
                                 const std::vector<TrialState*>& trials,
                                 bool alone) {
  const int64_t count = std::ssize(trials);
  const int64_t most =
      gpu_ ? std::numeric_limits<int64_t>::max() / 2 : kMostModels;
  if (count >= 2 * kind.timed_trials || 2 * count <= kind.timed_trials) {
    const WayTiming timing = {
        pool_, *team_, plan_, most, gpu_ ? kGpuBlockUs : 6e3, alone};
    const std::vector<bool> inputs = Inputs(name, kind);
    ASSIGN_OR_RETURN(kind.choice,
                     ChooseWay(timing, Ways(inputs, count), trials));
    kind.timed_trials = count;
    if (inputs.size() > 1) {
      cache_.Put(InputKey(name), kind.choice.way.sparse);
    }
  }
  const WayChoice& choice = kind.choice;
  const std::vector<int64_t> sizes =
      BundleSizes(choice.way, count, team_->workers(), most);
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
    RETURN_IF_ERROR(Place(name, kinds_[name], trials, kinds.size() == 1));
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
