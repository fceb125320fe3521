// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/input_choices.h"

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/cpu_info.h"
#include "trainer/data/nonzeros.h"
#include "trainer/search/bundle.h"
#include "trainer/version.h"

namespace onestep {

InputsByKind InputsOf(const std::vector<GroupReport>& groups) {
  InputsByKind inputs;
  for (const GroupReport& group : groups) {
    absl::string_view kind = group.kind;
    const bool sparse = absl::ConsumeSuffix(&kind, ", sparse input");
    inputs[std::string(kind)] = sparse ? InputMode::kSparse : InputMode::kDense;
  }
  return inputs;
}

InputChoices::InputChoices(const Config& config, const Dataset& data,
                           const std::vector<TrialResult>& results)
    : cache_("auto.json", "the choice of auto") {
  if (config.input != InputMode::kAuto ||
      config.compile.device == Device::kGpu) {
    return;
  }
  std::map<std::string, int64_t> trials;  // of each kind
  for (const TrialResult& result : results) ++trials[KindOf(result.trial)];
  nlohmann::ordered_json key;
  key["version"] = Version();
  key["cpu"] = CpuModelName();
  key["cores"] = DefaultThreads();
  key["density"] = absl::StrFormat("%.3f", Density(data));
  key["fuse"] = NameOf(config.compile.fuse);
  key["disable_pass"] = config.compile.disabled_passes;
  key["group"] = NameOf(config.search.group);
  for (const auto& [kind, count] : trials) {
    key["search"] = kind;
    key["trials"] = count;
    keys_[kind] = key.dump();
  }
}

InputsByKind InputChoices::Kept() const {
  InputsByKind inputs;
  for (const auto& [kind, key] : keys_) {
    const nlohmann::ordered_json kept = cache_.Get(key);
    for (const InputMode input : {InputMode::kDense, InputMode::kSparse}) {
      if (kept == NameOf(input)) inputs[kind] = input;
    }
  }
  return inputs;
}

void InputChoices::Keep(const std::vector<GroupReport>& groups) {
  for (const auto& [kind, input] : InputsOf(groups)) {
    const auto key = keys_.find(kind);
    if (key != keys_.end() && cache_.Get(key->second).is_null()) {
      cache_.Put(key->second, NameOf(input));
    }
  }
}

}  // namespace onestep
