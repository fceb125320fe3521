// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "runtime/cuda/cuda_probe.h"
#include "trainer/commands/commands.h"
#include "trainer/json_text.h"
#include "trainer/launch_costs.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const CudaProbe& probe) {
  Json json;
  json["gpu"] = probe.device.ToString();
  json["cuda_runtime"] = probe.device.runtime_version;
  json["cuda_driver"] = probe.device.driver_version;
  json["matmul_library"] = probe.matmul_library;
  json["rows"] = Json::array();
  for (const CudaProbeRow& row : probe.rows) {
    json["rows"].push_back({{"name", row.name},
                            {"unit", row.unit},
                            {"value", row.value},
                            {"low", row.low},
                            {"high", row.high},
                            {"doubt", row.doubt}});
  }
  return json;
}

std::string ToText(const CudaProbe& probe) {
  std::string text = absl::StrFormat(
      "%s, CUDA %s, driver for %s, %s\n\n%-52s %12s %12s %12s\n",
      probe.device.ToString(), probe.device.runtime_version,
      probe.device.driver_version,
      probe.matmul_library.empty() ? "no matmul library" : probe.matmul_library,
      "", "median", "least", "most");
  for (const CudaProbeRow& row : probe.rows) {
    if (row.value == 0) {
      absl::StrAppendFormat(&text, "%-52s none: %s\n", row.name, row.doubt);
      continue;
    }
    absl::StrAppendFormat(&text, "%-52s %12.4g %12.4g %12.4g %s%s\n", row.name,
                          row.value, row.low, row.high, row.unit,
                          row.doubt.empty() ? "" : "  (" + row.doubt + ")");
  }
  return text;
}

}  // namespace

absl::Status RunProbe(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(CudaApi* const cuda, FindCuda());
  ASSIGN_OR_RETURN(const CudaProbe probe, RunCudaProbe(*cuda));
  const Json json = ToJson(probe);
  KeepProbe(probe, json);
  console.Print(config.json ? absl::StrCat(JsonText(json, 2), "\n")
                            : ToText(probe));
  return absl::OkStatus();
}

}  // namespace onestep
