// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/profile.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/data/nonzeros.h"
#include "trainer/interrupt.h"
#include "trainer/json_text.h"
#include "trainer/launch_costs.h"
#include "trainer/measure/environment.h"
#include "trainer/measure/profile_report.h"
#include "trainer/measure/rows_to_time.h"
#include "trainer/measure/trace_file.h"
#include "trainer/output_dir.h"
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

// What was profiled, where.
Json Settings(const Config& config, const Dataset& data, Dispatch dispatch,
              const EnvironmentWatch& watch) {
  Json json;
  json["model"] = config.model.ToString();
  json["activation"] = NameOf(config.model.activation);
  json["loss"] = NameOf(config.model.loss);
  json["optimizer"] = NameOf(config.optimizer.kind);
  json["batch"] = config.batch;
  json["data"] = data.source;
  json["device"] = NameOf(config.compile.device);
  json["dispatch"] = NameOf(dispatch);
  json["threads"] = config.compile.threads;
  json["input"] = NameOf(config.input);
  json["environment"] = ToJson(watch.SoFar());
  return json;
}

std::string HeaderOf(const Config& config, const Dataset& data,
                     Dispatch dispatch, const EnvironmentWatch& watch) {
  return absl::StrCat(
      "profile: ", config.model.ToString(), ", ",
      NameOf(config.model.activation), ", ", NameOf(config.model.loss), ", ",
      NameOf(config.optimizer.kind), ", batch ", config.batch, ", device ",
      NameOf(config.compile.device), ", dispatch ", NameOf(dispatch),
      ", threads ", config.compile.threads, "\nrows: ", data.source,
      "\nmachine: ", ToString(watch.SoFar()), "\n\n");
}

absl::StatusOr<std::vector<Profile>> Profiles(const Config& config,
                                              const Dataset& data,
                                              TraceFile& trace) {
  ProfileOptions options;
  options.batch = config.batch;
  options.steps = config.profile_steps;
  if (!config.trace.empty()) {
    options.trace = &trace;
    options.trace_steps = config.trace_steps;
  }
  std::vector<bool> fusions = {config.compile.fuse};
  if (config.compare_fusion) fusions = {false, true};
  std::vector<ProfiledWay> ways;
  for (const bool fuse : fusions) {
    ProfiledWay way = {fuse ? "fused" : "unfused", OptionsOf(config, data)};
    way.compile.fuse = fuse;
    if (way.compile.device == Device::kGpu) UseKeptProbe(way.compile.cuda);
    ways.push_back(std::move(way));
  }
  const StatusLine line("profile");
  line.Show("step after step");
  return ProfileSteps(config.model, config.optimizer, ways, data, options);
}

}  // namespace

absl::Status RunProfile(const Config& config, Console& console) {
  RETURN_IF_ERROR(CheckCanWrite(config.trace));
  CatchSignals();
  const EnvironmentWatch watch;
  ASSIGN_OR_RETURN(const Dataset data, RowsToTime(config, config.batch));
  TraceFile trace;
  ASSIGN_OR_RETURN(const std::vector<Profile> profiles,
                   Profiles(config, data, trace));
  const Dispatch dispatch = profiles[0].dispatch;
  Json json = Settings(config, data, dispatch, watch);
  json["profiles"] = Json::array();
  std::string text = HeaderOf(config, data, dispatch, watch);
  for (const Profile& profile : profiles) {
    json["profiles"].push_back(ToJson(profile));
    absl::StrAppend(&text, ToText(profile), "\n");
  }
  if (profiles.size() == 2) {
    json["unfused_over_fused"] = RatioToJson(profiles[0], profiles[1]);
    absl::StrAppend(&text, CompareText(profiles[0], profiles[1]));
  }
  console.Print(config.json ? absl::StrCat(JsonText(json, 2), "\n") : text);
  return config.trace.empty() ? absl::OkStatus() : trace.Write(config.trace);
}

}  // namespace onestep
