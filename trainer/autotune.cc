// SPDX-License-Identifier: Apache-2.0
#include "trainer/autotune.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/cache.h"
#include "trainer/data/nonzeros.h"
#include "trainer/launch_costs.h"
#include "trainer/machine_info.h"
#include "trainer/measure/step_bench.h"
#include "trainer/measure/step_session.h"
#include "trainer/measure/timing.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// Each candidate runs this long before, and in each of so many rounds; where
// something else had a core each time, in up to three times as many.
constexpr double kWarmUs = 5e3;
constexpr int kMostWarmUps = 6;
constexpr double kRoundUs = 4e3;
constexpr int kRounds = 7;
constexpr int kLongStepRounds = 2;  // of more than kRoundUs: they tell soon
constexpr int kMostRounds = 3;
// Who needs so much longer than the fastest so far is not run any further.
constexpr double kHopeless = 1.5;

struct Attempt {
  AutoCandidate candidate;
  std::unique_ptr<StepSession> session;
  StepTimer timer;

  // A disturbed time is no reason to drop it.
  bool IsHopeless(double best_us) const {
    return timer.undisturbed() && timer.us() > kHopeless * best_us;
  }
};

// What a GPU may run the step as: the tiers that the flags leave open.
std::vector<AutoCandidate> GpuCandidates(const Config& config) {
  const CudaOptions& cuda = config.compile.cuda;
  std::vector<std::pair<Dispatch, CudaTier>> ways = {
      {Dispatch::kGraph, CudaTier::kLibrary}};
  if (config.compile.fuse) {
    ways = {{Dispatch::kSingle, CudaTier::kPersistent},
            {Dispatch::kGraph, CudaTier::kFused},
            {Dispatch::kGraph, CudaTier::kLibrary}};
  }
  if (config.compile.dispatch == Dispatch::kOps) {
    ways = {{Dispatch::kOps,
             cuda.tier == CudaTier::kAuto ? CudaTier::kLibrary : cuda.tier}};
  }
  std::vector<AutoCandidate> candidates;
  for (const auto& [dispatch, tier] : ways) {
    if (config.compile.dispatch != Dispatch::kAuto &&
        config.compile.dispatch != dispatch) {
      continue;
    }
    if (cuda.tier != CudaTier::kAuto && cuda.tier != tier) continue;
    std::vector<CudaFirstLayer> layers = {cuda.first_layer};
    if (cuda.first_layer == CudaFirstLayer::kAuto) {
      layers = {CudaFirstLayer::kFma};
      if (tier != CudaTier::kLibrary && cuda.math == MathMode::kFp32) {
        layers.push_back(CudaFirstLayer::kSplit);
      }
    }
    for (const CudaFirstLayer layer : layers) {
      candidates.push_back({dispatch, config.compile.threads, InputMode::kDense,
                            tier, layer, 0});
    }
  }
  return candidates;
}

std::vector<AutoCandidate> Candidates(const Config& config, double density) {
  if (config.compile.device == Device::kGpu) return GpuCandidates(config);
  std::vector<Dispatch> dispatches = {config.compile.dispatch};
  if (config.compile.dispatch == Dispatch::kAuto) {
    dispatches = {Dispatch::kOps};
    if (config.compile.fuse && config.compile.kernels != Kernels::kOnednn) {
      dispatches.push_back(Dispatch::kSingle);
    }
  }
  std::vector<InputMode> inputs = {config.input};
  if (config.input == InputMode::kAuto) {
    inputs = {InputMode::kDense};
    if (config.compile.fuse && density < kSparseDensity) {
      inputs.push_back(InputMode::kSparse);
    }
  }
  std::vector<AutoCandidate> candidates;
  for (const Dispatch dispatch : dispatches) {
    for (const InputMode input : inputs) {
      for (const int threads : ThreadCounts(config)) {
        candidates.push_back({dispatch, threads, input, CudaTier::kAuto,
                              CudaFirstLayer::kAuto, 0});
      }
    }
  }
  return candidates;
}

void Apply(const AutoCandidate& candidate, int64_t nonzeros, Config& config) {
  config.compile.dispatch = candidate.dispatch;
  config.compile.threads = candidate.threads;
  config.threads_auto = false;
  config.compile.cuda.tier = candidate.tier;
  config.compile.cuda.first_layer = candidate.first_layer;
  config.input = candidate.input;
  config.compile.sparse = {};
  if (config.input == InputMode::kSparse) {
    config.compile.sparse = {std::max<int64_t>(1, nonzeros)};
  }
}

// Compiles the step and warms it up, for a first idea of its time.
absl::StatusOr<Attempt> Try(const Config& config, const Dataset& data,
                            int64_t nonzeros, const AutoCandidate& candidate,
                            const CoreWaitsFn& waits) {
  Config tried = config;
  Apply(candidate, nonzeros, tried);
  tried.compile.dump_dir.clear();
  ASSIGN_OR_RETURN(
      std::unique_ptr<StepSession> session,
      StepSession::Create(config.model, config.optimizer, tried.compile, data,
                          std::min(config.batch, data.rows)));
  RETURN_IF_ERROR(session->Reset(kTimingRate));
  StepTimer timer(StepsOf(*session), waits);
  for (int i = 0; i < kMostWarmUps && !timer.undisturbed(); ++i) {
    RETURN_IF_ERROR(timer.Sample(kWarmUs).status());
  }
  return Attempt{candidate, std::move(session), std::move(timer)};
}

// Runs the trials in turn. False: some that has a chance was disturbed in every
// round.
absl::StatusOr<bool> TakeRounds(std::vector<Attempt>& trials, double best_us) {
  const int rounds = best_us > kRoundUs ? kLongStepRounds : kRounds;
  bool undisturbed = false;
  for (int round = 0;
       round < rounds || (round < kMostRounds * rounds && !undisturbed);
       ++round) {
    undisturbed = true;
    for (Attempt& trial : trials) {
      if (trial.IsHopeless(best_us)) continue;
      if (round < rounds || !trial.timer.undisturbed()) {
        RETURN_IF_ERROR(trial.timer.Sample(kRoundUs).status());
        best_us = std::min(best_us, trial.timer.us());
      }
      undisturbed &= trial.timer.undisturbed();
    }
  }
  return undisturbed;
}

absl::Status Time(const Config& config, const Dataset& data, int64_t nonzeros,
                  const CoreWaitsFn& waits, AutoChoice& choice) {
  std::vector<Attempt> trials;
  double best_us = std::numeric_limits<double>::infinity();
  const auto add = [&choice](const Attempt& trial) {
    choice.candidates.push_back(trial.candidate);
    choice.candidates.back().us = trial.timer.us();
  };
  for (const AutoCandidate& candidate : Candidates(config, choice.density)) {
    absl::StatusOr<Attempt> trial =
        Try(config, data, nonzeros, candidate, waits);
    if (IsRefusal(trial.status())) {
      choice.refused.push_back(
          absl::StrCat(FlagsOf(candidate), ": ", trial.status().message()));
      continue;
    }
    RETURN_IF_ERROR(trial.status());
    best_us = std::min(best_us, trial->timer.us());
    if (trial->IsHopeless(best_us)) {
      add(*trial);  // its memory is freed
    } else {
      trials.push_back(*std::move(trial));
    }
  }
  if (trials.empty()) {
    return absl::UnimplementedError(choice.refused.empty()
                                        ? "auto: no way to run the step"
                                        : choice.refused[0]);
  }
  ASSIGN_OR_RETURN(const bool undisturbed, TakeRounds(trials, best_us));
  choice.busy = !undisturbed;
  for (const Attempt& trial : trials) add(trial);
  std::stable_sort(choice.candidates.begin(), choice.candidates.end(),
                   [](const AutoCandidate& a, const AutoCandidate& b) {
                     return a.us < b.us;
                   });
  return absl::OkStatus();
}

// ---- what is kept
// ------------------------------------------------------------

// All that the choice depends on.
absl::StatusOr<std::string> KeyOf(const Config& config, const Dataset& data,
                                  double density) {
  ASSIGN_OR_RETURN(
      const Graph graph,
      BuildTrainStep(config.model, config.optimizer, data.rows, config.batch));
  Json json;
  json["machine"] = BuildAndCpu();
  json["graph"] =
      absl::StrFormat("%016x", std::hash<std::string>()(PrintGraph(graph)));
  json["model"] = config.model.ToString();
  json["batch"] = config.batch;
  json["density"] = absl::StrFormat("%.3f", density);
  json["device"] = NameOf(config.compile.device);
  if (config.compile.device == Device::kGpu) {
    const CudaOptions& cuda = config.compile.cuda;
    ASSIGN_OR_RETURN(CudaApi* const api, cuda.Api());
    ASSIGN_OR_RETURN(const CudaDevice device, api->Device());
    json["gpu"] = device.ToString();
    json["math"] = NameOf(cuda.math);
    json["tier"] = NameOf(cuda.tier);
    json["first_layer"] = NameOf(cuda.first_layer);
    json["steps_per_launch"] = cuda.steps_per_launch;
    json["device_data"] = cuda.table_limit_bytes;
    json["node_us"] = cuda.node_us;
    json["graph_launch_us"] = cuda.graph_launch_us;
  }
  json["fuse"] = NameOf(config.compile.fuse);
  json["dispatch"] = NameOf(config.compile.dispatch);
  json["kernels"] = NameOf(config.compile.kernels);
  json["threads"] =
      config.threads_auto ? "auto" : absl::StrCat(config.compile.threads);
  json["input"] = NameOf(config.input);
  json["affinity"] = ToString(config.compile.affinity);
  json["disable_pass"] = config.compile.disabled_passes;
  return json.dump();
}

Json ToJson(const AutoChoice& choice) {
  Json json;
  json["refused"] = choice.refused;
  for (const AutoCandidate& c : choice.candidates) {
    json["candidates"].push_back({{"dispatch", NameOf(c.dispatch)},
                                  {"threads", c.threads},
                                  {"input", NameOf(c.input)},
                                  {"tier", NameOf(c.tier)},
                                  {"first_layer", NameOf(c.first_layer)},
                                  {"us", c.us}});
  }
  return json;
}

template <typename E>
std::optional<E> FromName(const Json& json) {
  for (const Named<E>& named : Names<E>()) {
    if (json == named.name) return named.value;
  }
  return std::nullopt;
}

// nullopt for anything that this version did not write.
std::optional<AutoChoice> FromJson(const Json& json) {
  AutoChoice choice;
  choice.cached = true;
  try {
    choice.refused = json.at("refused").get<std::vector<std::string>>();
    for (const Json& c : json.at("candidates")) {
      const auto dispatch = FromName<Dispatch>(c.at("dispatch"));
      const auto input = FromName<InputMode>(c.at("input"));
      const auto tier = FromName<CudaTier>(c.at("tier"));
      const auto first_layer = FromName<CudaFirstLayer>(c.at("first_layer"));
      const int threads = c.at("threads").get<int>();
      const double us = c.at("us").get<double>();
      if (!dispatch || !input || !tier || !first_layer || threads < 1 ||
          us <= 0) {
        return std::nullopt;
      }
      choice.candidates.push_back(
          {*dispatch, threads, *input, *tier, *first_layer, us});
    }
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (choice.candidates.empty()) return std::nullopt;
  return choice;
}

// The choice made before, if this program could make it now.
std::optional<AutoChoice> KeptChoice(
    const Cache& cache, const std::string& key,
    const std::vector<AutoCandidate>& candidates) {
  std::optional<AutoChoice> kept = FromJson(cache.Get(key));
  if (!kept) return std::nullopt;
  const std::string flags = FlagsOf(kept->candidates[0]);
  for (const AutoCandidate& candidate : candidates) {
    if (FlagsOf(candidate) == flags) return kept;
  }
  return std::nullopt;
}

}  // namespace

std::vector<int> ThreadCounts(const Config& config) {
  int most = config.compile.threads;
  if (!config.threads_auto) return {most};
  const Affinity& affinity = config.compile.affinity;
  if (affinity.kind == Affinity::kList) {
    most = std::min(most, static_cast<int>(std::ssize(affinity.cpus)));
  }
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

std::string FlagsOf(const AutoCandidate& candidate) {
  if (candidate.tier != CudaTier::kAuto) {
    return absl::StrCat(
        "--dispatch ", NameOf(candidate.dispatch), " --tier ",
        NameOf(candidate.tier),
        candidate.tier == CudaTier::kLibrary
            ? ""
            : absl::StrCat(" --first-layer ", NameOf(candidate.first_layer)));
  }
  return absl::StrCat("--dispatch ", NameOf(candidate.dispatch), " --threads ",
                      candidate.threads, " --input ", NameOf(candidate.input));
}

absl::StatusOr<AutoChoice> SettleAuto(Config& config, const Dataset& data,
                                      const CoreWaitsFn& waits) {
  AutoChoice choice;
  const int64_t nonzeros = CountNonzeros(data);
  choice.density = Density(data);
  const AutoCandidate given = {
      config.compile.dispatch,  config.compile.threads,          config.input,
      config.compile.cuda.tier, config.compile.cuda.first_layer, 0};
  const std::vector<AutoCandidate> candidates =
      Candidates(config, choice.density);
  if (candidates.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tier ", NameOf(given.tier), ": not with --dispatch ",
        NameOf(given.dispatch), " --fuse ", NameOf(config.compile.fuse)));
  }
  // Before anything is timed, as the user may have asked for what cannot be.
  if (config.compile.device == Device::kGpu) {
    if (config.input == InputMode::kSparse) {
      return absl::UnimplementedError("--input sparse on --device gpu");
    }
    ASSIGN_OR_RETURN(CudaApi* const cuda, config.compile.cuda.Api());
    RETURN_IF_ERROR(cuda->Device().status());
    UseKeptProbe(config.compile.cuda);
  }
  if (candidates.size() == 1) {
    Apply(candidates[0], nonzeros, config);
    if (FlagsOf(candidates[0]) != FlagsOf(given)) {
      choice.candidates = candidates;
    }
    return choice;
  }
  ASSIGN_OR_RETURN(const std::string key, KeyOf(config, data, choice.density));
  Cache cache("auto.json", "the choice of auto");
  std::optional<AutoChoice> kept = KeptChoice(cache, key, candidates);
  if (kept) {
    kept->density = choice.density;
    choice = *std::move(kept);
  } else {
    RETURN_IF_ERROR(Time(config, data, nonzeros, waits, choice));
    if (!choice.busy) cache.Put(key, ToJson(choice));
  }
  Apply(choice.candidates[0], nonzeros, config);
  return choice;
}

std::string AutoText(const AutoChoice& choice) {
  if (choice.candidates.empty()) return "";
  const auto time = [](const AutoCandidate& c) {
    return absl::StrFormat("%s %.2f us", FlagsOf(c), c.us);
  };
  if (choice.candidates.size() == 1) {
    return absl::StrCat("auto: ", FlagsOf(choice.candidates[0]), "\n");
  }
  std::string text = absl::StrCat(
      "auto: ", time(choice.candidates[0]), " a step",
      choice.cached ? ", as measured before" : ", the fastest here",
      choice.busy ? "; the machine was busy: not kept" : "", "\n");
  for (size_t i = 1; i < choice.candidates.size(); ++i) {
    absl::StrAppend(&text, "      ", time(choice.candidates[i]), "\n");
  }
  for (const std::string& refused : choice.refused) {
    absl::StrAppend(&text, "      ", refused, "\n");
  }
  return text;
}

}  // namespace onestep
