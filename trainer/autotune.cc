// SPDX-License-Identifier: Apache-2.0
#include "trainer/autotune.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/cpu_info.h"
#include "runtime/status.h"
#include "trainer/console.h"
#include "trainer/data/nonzeros.h"
#include "trainer/output_dir.h"
#include "trainer/step_bench.h"
#include "trainer/step_session.h"
#include "trainer/version.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Each candidate runs this long before, and in each of so many rounds.
constexpr double kWarmSeconds = 0.005;
constexpr double kRoundSeconds = 0.004;
constexpr int kRounds = 5;

struct Trial {
  AutoCandidate candidate;
  std::unique_ptr<StepSession> session;
  int64_t steps = 1;  // of a round
};

absl::StatusOr<double> MicrosPerStep(StepSession& session, int64_t steps) {
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(session.Run(steps));
  const std::chrono::duration<double, std::micro> us = Clock::now() - start;
  return us.count() / static_cast<double>(steps);
}

std::vector<int> ThreadCounts(const Config& config) {
  if (!config.threads_auto) return {config.compile.threads};
  std::vector<int> counts;
  const int most = DefaultThreads();
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

std::vector<AutoCandidate> Candidates(const Config& config, double density) {
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
        candidates.push_back({dispatch, threads, input, 0});
      }
    }
  }
  return candidates;
}

void Apply(const AutoCandidate& candidate, int64_t nonzeros, Config& config) {
  config.compile.dispatch = candidate.dispatch;
  config.compile.threads = candidate.threads;
  config.threads_auto = false;
  config.input = candidate.input;
  config.compile.sparse = {};
  if (config.input == InputMode::kSparse) config.compile.sparse = {nonzeros};
}

absl::Status Time(const Config& config, const Dataset& data, int64_t nonzeros,
                  AutoChoice& choice) {
  std::vector<Trial> trials;
  const int64_t batch = std::min(config.batch, data.rows);
  for (const AutoCandidate& candidate : Candidates(config, choice.density)) {
    Config tried = config;
    Apply(candidate, nonzeros, tried);
    tried.compile.dump_dir.clear();
    absl::StatusOr<std::unique_ptr<StepSession>> session =
        StepSession::Create(config.model, config.optimizer, tried.compile, data,
                            batch);
    if (absl::IsUnimplemented(session.status()) && trials.size() > 0) {
      choice.refused.push_back(absl::StrCat(FlagsOf(candidate), ": ",
                                            session.status().message()));
      continue;
    }
    RETURN_IF_ERROR(session.status());
    RETURN_IF_ERROR((*session)->Reset(kTimingRate));
    trials.push_back({candidate, *std::move(session)});
  }
  for (Trial& trial : trials) {
    ASSIGN_OR_RETURN(const double first, MicrosPerStep(*trial.session, 1));
    const double warm = kWarmSeconds * 1e6 / std::max(first, 0.01);
    ASSIGN_OR_RETURN(trial.candidate.us,
                     MicrosPerStep(*trial.session,
                                   static_cast<int64_t>(std::ceil(warm))));
    trial.steps = static_cast<int64_t>(
        std::ceil(kRoundSeconds * 1e6 / trial.candidate.us));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Trial& trial : trials) {
      ASSIGN_OR_RETURN(const double us,
                       MicrosPerStep(*trial.session, trial.steps));
      trial.candidate.us = std::min(trial.candidate.us, us);
    }
  }
  for (const Trial& trial : trials) choice.candidates.push_back(trial.candidate);
  std::stable_sort(choice.candidates.begin(), choice.candidates.end(),
                   [](const AutoCandidate& a, const AutoCandidate& b) {
                     return a.us < b.us;
                   });
  return absl::OkStatus();
}

// ---- the file ---------------------------------------------------------------

fs::path CacheFile() {
  const auto env = [](const char* name) -> fs::path {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  fs::path folder = env("ONESTEP_CACHE");
  if (folder.empty() && !env("XDG_CACHE_HOME").empty()) {
    folder = env("XDG_CACHE_HOME") / "onestep";
  }
  if (folder.empty() && !env("HOME").empty()) {
    folder = env("HOME") / ".cache" / "onestep";
  }
  return folder.empty() ? folder : folder / "auto.json";
}

// All that the choice depends on.
absl::StatusOr<std::string> KeyOf(const Config& config, const Dataset& data,
                                  double density) {
  ASSIGN_OR_RETURN(
      const Graph graph,
      BuildTrainStep(config.model, config.optimizer, data.rows, config.batch));
  Json json;
  json["version"] = Version();
  json["cpu"] = CpuModelName();
  json["cores"] = DefaultThreads();
  json["graph"] = absl::StrFormat(
      "%016x", std::hash<std::string>()(PrintGraph(graph)));
  json["model"] = config.model.ToString();
  json["batch"] = config.batch;
  json["density"] = absl::StrFormat("%.3f", density);
  json["device"] = NameOf(config.compile.device);
  json["fuse"] = NameOf(config.compile.fuse);
  json["dispatch"] = NameOf(config.compile.dispatch);
  json["kernels"] = NameOf(config.compile.kernels);
  json["threads"] = config.threads_auto
                        ? "auto"
                        : absl::StrCat(config.compile.threads);
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
      const int threads = c.at("threads").get<int>();
      if (!dispatch || !input || threads < 1) return std::nullopt;
      choice.candidates.push_back(
          {*dispatch, threads, *input, c.at("us").get<double>()});
    }
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (choice.candidates.empty()) return std::nullopt;
  return choice;
}

// An object, whatever is there.
Json ReadCache(const fs::path& file) {
  std::ifstream in(file);
  Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  if (in.is_open()) {
    Console::Notice(absl::StrCat(file.string(),
                                 ": want a JSON object; written anew"));
  }
  return Json::object();
}

void WriteCache(const fs::path& file, const std::string& key,
                const AutoChoice& choice) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  Json json = ReadCache(file);
  json[key] = ToJson(choice);
  // Renamed, so that a run beside this one never reads half of it.
  const std::string draft = absl::StrCat(file.string(), ".", getpid());
  absl::Status status = WriteTextFile(draft, json.dump(1));
  if (status.ok()) fs::rename(draft, file, error);
  if (error) status = absl::UnavailableError(error.message());
  if (!status.ok()) {
    Console::Notice(absl::StrCat("the choice of auto is not kept: ",
                                 status.message()));
  }
}

}  // namespace

std::string FlagsOf(const AutoCandidate& candidate) {
  return absl::StrCat("--dispatch ", NameOf(candidate.dispatch), " --threads ",
                      candidate.threads, " --input ", NameOf(candidate.input));
}

absl::StatusOr<AutoChoice> SettleAuto(Config& config, const Dataset& data) {
  AutoChoice choice;
  const int64_t nonzeros = CountNonzeros(data);
  choice.density = static_cast<double>(nonzeros) /
                   static_cast<double>(data.rows * data.features);
  const AutoCandidate given = {config.compile.dispatch, config.compile.threads,
                               config.input, 0};
  // Elsewhere the lowering decides, or refuses.
  if (config.compile.device != Device::kCpu) {
    if (config.input == InputMode::kAuto) config.input = InputMode::kDense;
    return choice;
  }
  const std::vector<AutoCandidate> candidates =
      Candidates(config, choice.density);
  if (candidates.size() == 1) {
    Apply(candidates[0], nonzeros, config);
    if (FlagsOf(candidates[0]) != FlagsOf(given)) {
      choice.candidates = candidates;
    }
    return choice;
  }
  ASSIGN_OR_RETURN(const std::string key, KeyOf(config, data, choice.density));
  const fs::path file = CacheFile();
  std::optional<AutoChoice> kept;
  if (!file.empty()) {
    const Json cache = ReadCache(file);
    if (cache.contains(key)) kept = FromJson(cache[key]);
  }
  if (kept) {
    kept->density = choice.density;
    choice = *std::move(kept);
  } else {
    RETURN_IF_ERROR(Time(config, data, nonzeros, choice));
    if (!file.empty()) WriteCache(file, key, choice);
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
      choice.cached ? ", as measured before" : ", the fastest here", "\n");
  for (size_t i = 1; i < choice.candidates.size(); ++i) {
    absl::StrAppend(&text, "      ", time(choice.candidates[i]), "\n");
  }
  for (const std::string& refused : choice.refused) {
    absl::StrAppend(&text, "      ", refused, "\n");
  }
  return text;
}

}  // namespace onestep
