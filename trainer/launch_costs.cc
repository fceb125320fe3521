// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch_costs.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/cuda/cuda_api.h"
#include "trainer/cache.h"
#include "trainer/console.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFile[] = "probe.json";
constexpr char kWhat[] = "the probe of the GPU";

// What was kept of `device` and is not in doubt; empty: nothing was, or it is
// damaged, which is said.
std::vector<CudaProbeRow> KeptRows(const Cache& cache,
                                   const std::string& device) {
  const Json probe = cache.Get(device);
  if (probe.is_null()) return {};
  std::vector<CudaProbeRow> rows;
  try {
    for (const Json& row : probe.at("rows")) {
      if (!row.at("doubt").get<std::string>().empty()) continue;
      CudaProbeRow& kept = rows.emplace_back();
      row.at("name").get_to(kept.name);
      row.at("value").get_to(kept.value);
      kept.unit = row.value("unit", "");
    }
  } catch (const Json::exception& error) {
    Console::Notice(absl::StrCat(cache.file(), ": want what trainer probe ",
                                 "keeps, got ", error.what()));
    return {};
  }
  return rows;
}

// 0: it was not measured, or is in doubt.
double Measured(const std::vector<CudaProbeRow>& rows,
                const std::string& name) {
  for (const CudaProbeRow& row : rows) {
    if (row.name == name) return row.value;
  }
  return 0;
}

double Micros(const std::vector<CudaProbeRow>& rows, const std::string& name) {
  return Measured(rows, name) * 1e-3;
}

double NodeUs(const std::vector<CudaProbeRow>& rows) {
  return Micros(rows, kGraphNodeRow);
}

absl::StatusOr<CudaDevice> DeviceOf(const CudaOptions& options) {
  ASSIGN_OR_RETURN(CudaApi* const cuda, options.Api());
  return cuda->Device();
}

// Of the first matmul in this math: the probe's is square and large.
double MatMulTflops(const std::vector<CudaProbeRow>& rows, MathMode math) {
  for (const CudaProbeRow& row : rows) {
    if (row.unit == "TFLOP/s" && absl::StrContains(row.name, ToString(math))) {
      return row.value;
    }
  }
  return 0;
}

}  // namespace

void KeepProbe(const CudaProbe& probe, const Json& json) {
  Cache(kFile, kWhat).Put(probe.device.ToString(), json);
}

void UseKeptProbe(CudaOptions& cuda) {
  const absl::StatusOr<CudaDevice> device = DeviceOf(cuda);
  if (!device.ok()) return;  // the compiler reports that
  const auto rows = KeptRows(Cache(kFile, kWhat), device->ToString());
  cuda.node_us = NodeUs(rows);
  cuda.graph_launch_us = Micros(rows, kGraphLaunchRow);
}

absl::StatusOr<KeptProbe> FindKeptProbe(const CudaOptions& options) {
  const absl::StatusOr<CudaDevice> device = DeviceOf(options);
  const Cache cache(kFile, kWhat);
  const std::vector<std::string> kept = cache.Keys();
  if (kept.empty()) {
    return absl::NotFoundError("no GPU was probed: trainer probe measures one");
  }
  KeptProbe found;
  found.here = device.ok();
  found.device = device.ok() ? device->ToString() : kept.back();
  const auto rows = KeptRows(cache, found.device);
  if (rows.empty()) {
    return absl::NotFoundError(absl::StrCat(
        found.device, " was not probed: trainer probe measures it"));
  }
  found.node_us = NodeUs(rows);
  found.launch_us = Micros(rows, kStreamLaunchRow);
  found.matmul_tflops = MatMulTflops(rows, options.math);
  found.memory_gbs = Measured(rows, kDeviceMemoryRow);
  found.to_device_gbs = Measured(rows, kToDeviceRow);
  return found;
}

}  // namespace onestep
