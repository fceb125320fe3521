// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/profile.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/status.h"
#include "trainer/commands/commands.h"
#include "trainer/data/nonzeros.h"
#include "trainer/launch_costs.h"
#include "trainer/measure/profile_report.h"
#include "trainer/measure/rows_to_time.h"
#include "trainer/measure/trace_file.h"
#include "trainer/status_line.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

CompileOptions OptionsOf(const Config& config, const Dataset& data) {
  CompileOptions options = config.compile;
  if (config.input == InputMode::kSparse) {
    options.sparse.nonzeros = CountNonzeros(data);
  }
  return options;
}

std::string HeaderOf(const Config& config, const Dataset& data) {
  return absl::StrCat("profile: ", config.model.ToString(), ", ",
                      NameOf(config.model.activation), ", ",
                      NameOf(config.model.loss), ", ",
                      NameOf(config.optimizer.kind), ", batch ", config.batch,
                      ", device ", NameOf(config.compile.device), ", threads ",
                      config.compile.threads, "\nrows: ", data.source, "\n\n");
}

}  // namespace

absl::Status RunProfile(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(const Dataset data, RowsToTime(config, config.batch));
  ProfileOptions options;
  options.batch = config.batch;
  options.steps = config.profile_steps;
  TraceFile trace;
  std::vector<Profile> profiles;
  std::vector<bool> fusions = {config.compile.fuse};
  if (config.compare_fusion) fusions = {false, true};
  const StatusLine line("profile");
  for (const bool fuse : fusions) {
    options.name = fuse ? "fused" : "unfused";
    // One timeline: of the two that are compared, of the fused step.
    if (!config.trace.empty() && fuse == fusions.back()) {
      options.trace = &trace;
      options.trace_steps = config.trace_steps;
    }
    CompileOptions compile = OptionsOf(config, data);
    if (compile.device == Device::kGpu) UseKeptProbe(compile.cuda);
    compile.fuse = fuse;
    line.Show(options.name);
    ASSIGN_OR_RETURN(
        Profile profile,
        ProfileStep(config.model, config.optimizer, compile, data, options));
    profiles.push_back(std::move(profile));
  }
  if (!config.trace.empty()) RETURN_IF_ERROR(trace.Write(config.trace));
  Json json;
  json["profiles"] = Json::array();
  std::string text = HeaderOf(config, data);
  for (const Profile& profile : profiles) {
    json["profiles"].push_back(ToJson(profile));
    absl::StrAppend(&text, ToText(profile), "\n");
  }
  if (profiles.size() == 2) {
    absl::StrAppend(&text, CompareText(profiles[0], profiles[1]));
  }
  console.Print(config.json ? absl::StrCat(json.dump(2), "\n") : text);
  return absl::OkStatus();
}

}  // namespace onestep
