// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/cpu/core_latency.h"
#include "runtime/cpu/cpu_info.h"
#include "trainer/commands/commands.h"
#include "trainer/json_text.h"
#include "trainer/machine_info.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// An aligned line per value; lists and objects a line per entry.
void AppendText(const std::string& key, const Json& value, std::string* text) {
  if (value.is_object()) {
    absl::StrAppend(text, key, "\n");
    for (const auto& [name, entry] : value.items()) {
      AppendText("  " + name, entry, text);
    }
    return;
  }
  std::string shown;
  if (value.is_array()) {
    for (const Json& entry : value) {
      absl::StrAppend(&shown, shown.empty() ? "" : ", ",
                      entry.get<std::string>());
    }
    if (shown.empty()) shown = "none";
  } else if (value.is_null()) {
    shown = "none";
  } else {
    shown = value.is_string() ? value.get<std::string>() : value.dump();
  }
  absl::StrAppendFormat(text, "%-18s %s\n", key, shown);
}

// Of all CPUs; null where there is one.
Json CoreLatencyJson(bool numbers) {
  const auto latency =
      MeasureCoreLatency(static_cast<int>(AffinityCpus().size()));
  if (!latency.ok()) return nullptr;
  if (!numbers) return ToString(*latency);
  return {{"cpus", {latency->from, latency->to}},
          {"ns", latency->ns},
          {"far", latency->far()}};
}

}  // namespace

absl::Status RunInfo(const Config& config, Console& console) {
  Json json = MachineInfo();
  json["core_latency"] = CoreLatencyJson(config.json);
  if (config.json) {
    console.Print(absl::StrCat(JsonText(json, 2), "\n"));
    return absl::OkStatus();
  }
  std::string text;
  for (const auto& [key, value] : json.items()) AppendText(key, value, &text);
  console.Print(text);
  return absl::OkStatus();
}

}  // namespace onestep
