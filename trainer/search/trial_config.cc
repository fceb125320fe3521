// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/trial_config.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "trainer/search/trial_columns.h"
#include "trainer/search/trial_input.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// A word of a command line that a shell takes apart.
std::string ShellWord(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=-+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string ValueText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    return absl::StrJoin(value.get<std::vector<std::string>>(), ",");
  }
  return value.dump();
}

}  // namespace

Config ConfigOfTrial(const Config& search, const Trial& trial, double density) {
  Config config = search;
  config.verb = Verb::kTrain;
  config.model = trial.model;
  config.optimizer = trial.optimizer;
  config.lr = trial.lr;
  config.batch = trial.batch;
  config.seed = trial.seed;
  config.shuffle_seed = search.shuffle_seed.value_or(search.seed);
  config.compile.kernels = Kernels::kLoops;
  if (config.compile.device == Device::kCpu) {
    config.compile.dispatch = Dispatch::kSingle;
    config.compile.threads = 1;
    config.compile.affinity = {};
  }
  config.out.clear();
  if (config.compile.device == Device::kCpu) {
    config.input =
        WalksNonzeros(search.input, trial.model, density, search.compile)
            ? InputMode::kSparse
            : InputMode::kDense;
  }
  return config;
}

std::string TrainCommandLine(const Config& config, const std::string& data) {
  Json flags = ConfigToJson(config);
  Json defaults = ConfigToJson(Config());
  flags["data"] = data;
  defaults["shuffle_seed"] = flags["seed"];
  defaults["threads"] = nullptr;  // auto
  if (config.compile.device == Device::kGpu) flags.erase("threads");
  std::string line = "trainer train";
  for (const auto& [key, value] : flags.items()) {
    const std::string flag =
        absl::StrCat(" --", absl::StrReplaceAll(key, {{"_", "-"}}));
    const Json none = value.is_boolean() ? Json(false) : Json();
    if (value == defaults.value(key, none)) continue;
    absl::StrAppend(&line, flag);
    if (!value.is_boolean()) {
      absl::StrAppend(&line, " ", ShellWord(ValueText(value)));
    }
  }
  return line;
}

std::string GivenCommandLine(const Config& config) {
  return absl::StrCat("trainer ",
                      absl::StrJoin(config.arguments, " ",
                                    [](std::string* out, const auto& word) {
                                      out->append(ShellWord(word));
                                    }));
}

Json SearchConfigToJson(const Config& config) {
  const SearchConfig& search = config.search;
  Json json = ConfigToJson(config);
  for (const char* key : {"model", "patience", "dispatch", "kernels", "out"}) {
    json.erase(key);
  }
  const std::vector<OptimizerKind>& kinds = search.space.optimizer;
  const bool has_momentum = std::find(kinds.begin(), kinds.end(),
                                      OptimizerKind::kMomentum) != kinds.end();
  for (const auto& [flag, text] : SpaceText(search.space)) {
    if (flag == "momentum" && !has_momentum) continue;
    json[ColumnKey(flag)] = text;
  }
  if (has_momentum) json["nesterov"] = config.optimizer.nesterov;
  json["sample"] = NameOf(search.sample);
  if (search.sample == Sample::kRandom) json["trials"] = search.trials;
  json["metric"] = NameOf(search.metric);
  json["early_stop"] = NameOf(search.early_stop);
  if (search.early_stop == EarlyStop::kAsha) {
    json["asha_eta"] = search.asha_eta;
    json["asha_min_epochs"] = search.asha_min_epochs;
  }
  json["group"] = NameOf(search.group);
  if (search.parallel > 0) json["parallel"] = search.parallel;
  if (search.time_limit > 0) json["time_limit"] = search.time_limit;
  json["command"] = GivenCommandLine(config);
  return json;
}

}  // namespace onestep
