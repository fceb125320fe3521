// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch_costs.h"

#include "runtime/cuda_api.h"
#include "trainer/cache.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFile[] = "probe.json";
constexpr char kWhat[] = "the probe of the GPU";
// Rows of the probe (cuda_probe.cc).
constexpr char kNode[] = "graph node, chain of 64";
constexpr char kLaunch[] = "CPU time of a graph launch, chain of 64";

// In microseconds; 0: it was not measured, or is in doubt.
double Cost(const Json& probe, const char* name) {
  for (const Json& row : probe.value("rows", Json::array())) {
    if (row.value("name", "") == name && row.value("doubt", "?").empty()) {
      return row.value("value", 0.0) * 1e-3;
    }
  }
  return 0;
}

}  // namespace

void KeepProbe(const CudaProbe& probe, const Json& json) {
  Cache(kFile, kWhat).Put(probe.device.ToString(), json);
}

void UseKeptProbe(CudaOptions& cuda) {
  CudaApi& api = cuda.cuda == nullptr ? RealCuda() : *cuda.cuda;
  const auto device = api.Device();
  if (!device.ok()) return;  // whoever runs on it says so
  const Json probe = Cache(kFile, kWhat).Get(device->ToString());
  if (!probe.is_object()) return;
  cuda.node_us = Cost(probe, kNode);
  cuda.graph_launch_us = Cost(probe, kLaunch);
}

}  // namespace onestep
