// SPDX-License-Identifier: Apache-2.0
#include "trainer/search_flags.h"

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

constexpr int64_t kMaxBatch = 1 << 20;
constexpr int64_t kMaxEpochs = 1'000'000;
constexpr double kMaxSeconds = 1e9;

// Values by commas, each once.
template <typename T>
FlagSet::Set ListOf(std::vector<T>* values,
                    std::function<absl::StatusOr<T>(std::string)> parse) {
  return [values, parse](const std::string& text) -> absl::Status {
    values->clear();
    for (const absl::string_view word : absl::StrSplit(text, ',')) {
      ASSIGN_OR_RETURN(T value, parse(std::string(word)));
      if (std::find(values->begin(), values->end(), value) != values->end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("want each value once, got ", Quote(word), " again"));
      }
      values->push_back(std::move(value));
    }
    return absl::OkStatus();
  };
}

FlagSet::Set AxisOf(NumberAxis* axis, double low, double high) {
  return [axis, low, high](const std::string& text) -> absl::Status {
    ASSIGN_OR_RETURN(*axis, ParseNumberAxis(text, low, high));
    return absl::OkStatus();
  };
}

absl::Status Refuse(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

}  // namespace

void AddSearchSpace(Config& config, FlagSet& flags) {
  constexpr char kNumbers[] = "A,B|RANGE";
  SearchSpace& space = config.search.space;
  flags.Group("Model");
  flags.Value(
      "--hidden", "WIDTHS,...",
      "Widths of the hidden layers, like 64,128-64, or none; features and "
      "classes are the data's [128]",
      ListOf<std::vector<int64_t>>(&space.hidden, ParseHidden));
  flags.Value("--activation", "A,B",
              absl::StrCat("Of the hidden layers, of ",
                           absl::StrJoin(Words<Activation>(), ", "), " [relu]"),
              ListOf<Activation>(&space.activation, ParseChoice<Activation>));
  flags.Choice("--loss", &config.model.loss, "What is minimised");
  flags.Choice("--init", &config.init, "How weights are drawn");
  flags.Unsigned("--seed", &config.seed,
                 "Of weights, shuffling, and the trials of --trials [1]");
  flags.Integer("--seeds", &space.seeds, 1, kMaxTrials,
                "Seeds of the weights, from --seed on");
  flags.Unsigned("--shuffle-seed", &config.shuffle_seed,
                 "Of shuffling, the same in all trials [--seed]");
  flags.Group("Optimizer");
  flags.Value(
      "--optimizer", "A,B",
      absl::StrCat("How weights are updated, of ",
                   absl::StrJoin(Words<OptimizerKind>(), ", "), " [sgd]"),
      ListOf<OptimizerKind>(&space.optimizer, ParseChoice<OptimizerKind>));
  flags.Value("--momentum", kNumbers, "Of the optimizer momentum [0.9]",
              AxisOf(&space.momentum, 0, 1));
  flags.Switch("--nesterov", &config.optimizer.nesterov,
               "Nesterov's form of momentum");
  flags.Value("--weight-decay", kNumbers, "L2; for adamw decoupled [0]",
              AxisOf(&space.weight_decay, 0, FLT_MAX));
  flags.Value("--batch", "A,B", "Rows of a step [32]",
              ListOf<int64_t>(&space.batch, [](const std::string& text) {
                return ParseInteger(text, 1, kMaxBatch);
              }));
  flags.Value("--lr", kNumbers,
              "Learning rate; RANGE is log:1e-4..1 or lin:0..0.9, to draw "
              "from, or with a number of points, log:1e-4..1:5 [0.1]",
              AxisOf(&space.lr, FLT_MIN, FLT_MAX));
}

void AddSearchRun(Config& config, FlagSet& flags) {
  SearchConfig& search = config.search;
  flags.Group("Search");
  flags.Choice("--sample", &search.sample,
               "All combinations, or as many as --trials says");
  flags.Integer("--trials", &search.trials, 0, kMaxTrials,
                "Draw so many trials, each value of each at random, its seed "
                "as well; 0: the grid; with --sample grid the first so many");
  flags.Integer("--parallel", &search.parallel, 0, kMaxTrials,
                "Trials that train side by side; 0: 16 for each thread and 32 "
                "at least, 128 on a GPU");
  flags.Choice("--group", &search.group,
               "Many models in one step, or each by itself, or the faster");
  flags.Choice("--metric", &search.metric,
               "On the validation rows: what the best is best in, and what "
               "--early-stop goes by");
  flags.Choice("--early-stop", &search.early_stop,
               "Stop trials at --asha-min-epochs times 1, eta, eta^2 ... "
               "epochs that are not among the best 1/eta so far");
  flags.Integer("--asha-eta", &search.asha_eta, 2, 1000,
                "One trial in so many goes on");
  flags.Integer("--asha-min-epochs", &search.asha_min_epochs, 1, kMaxEpochs,
                "Epochs before any is stopped");
  flags.Number("--time-limit", &search.time_limit, 0, kMaxSeconds,
               "Seconds after which no more is trained; 0: none");
  flags.Group("Output");
  flags.Text("--out", "DIR", &config.out,
             "Save search.json, trials.csv, search.html and the best model, in "
             "best, there");
  flags.Switch("--force", &config.force,
               "Remove an earlier run from --out first");
  flags.Switch("--resume", &search.resume,
               "Go on with the search in --out; trials that ended are kept");
}

absl::Status SettleSearch(Config& config, const FlagSet& flags) {
  if (config.verb != Verb::kSearch) return absl::OkStatus();
  SearchConfig& search = config.search;
  if (search.trials > 0 && !flags.Given("--sample")) {
    search.sample = Sample::kRandom;
  }
  if (search.sample == Sample::kRandom && search.trials == 0) {
    return Refuse("--sample random: want --trials N with it");
  }
  const std::vector<OptimizerKind>& kinds = search.space.optimizer;
  for (const char* flag : {"--momentum", "--nesterov"}) {
    if (flags.Given(flag) &&
        std::count(kinds.begin(), kinds.end(), OptimizerKind::kMomentum) == 0) {
      return Refuse(absl::StrCat(
          flag, ": want momentum among --optimizer with it, got none"));
    }
  }
  if (search.early_stop == EarlyStop::kNone) {
    for (const char* flag : {"--asha-eta", "--asha-min-epochs"}) {
      if (flags.Given(flag)) {
        return Refuse(
            absl::StrCat(flag, ": want --early-stop asha with it, got none"));
      }
    }
  } else if (search.asha_min_epochs >= config.epochs) {
    return Refuse(
        absl::StrCat("--early-stop asha: want --epochs above "
                     "--asha-min-epochs ",
                     search.asha_min_epochs, ", got ", config.epochs));
  }
  if (config.validation == 0) {
    return Refuse("--validation: want above 0 with search, got 0");
  }
  if (search.resume && config.out.empty()) {
    return Refuse("--resume: want --out DIR with it");
  }
  if (search.resume && config.force) {
    return Refuse("--resume: want no --force with it, which overwrites");
  }
  return absl::OkStatus();
}

}  // namespace onestep
