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

InputChoices::InputChoices(const Config& config, const Dataset& data)
    : chooses_(config.input == InputMode::kAuto &&
               config.compile.device == Device::kCpu),
      cache_("auto.json", "the choice of auto") {
  key_["version"] = Version();
  key_["cpu"] = CpuModelName();
  key_["cores"] = DefaultThreads();
  key_["density"] = absl::StrFormat("%.3f", Density(data));
  key_["fuse"] = NameOf(config.compile.fuse);
  key_["disable_pass"] = config.compile.disabled_passes;
  key_["group"] = NameOf(config.search.group);
}

std::string InputChoices::KeyOf(const std::string& kind) const {
  nlohmann::ordered_json key = key_;
  key["search"] = kind;
  return key.dump();
}

InputsByKind InputChoices::Of(const std::vector<TrialResult>& results) const {
  InputsByKind inputs;
  if (!chooses_) return inputs;
  for (const TrialResult& result : results) {
    const std::string kind = KindOf(result.trial);
    if (inputs.contains(kind)) continue;
    const nlohmann::ordered_json kept = cache_.Get(KeyOf(kind));
    for (const InputMode input : {InputMode::kDense, InputMode::kSparse}) {
      if (kept == NameOf(input)) inputs[kind] = input;
    }
  }
  return inputs;
}

void InputChoices::Keep(const std::vector<GroupReport>& groups) {
  if (!chooses_) return;
  for (const auto& [kind, input] : InputsOf(groups)) {
    const std::string key = KeyOf(kind);
    if (cache_.Get(key).is_null()) cache_.Put(key, NameOf(input));
  }
}

}  // namespace onestep
