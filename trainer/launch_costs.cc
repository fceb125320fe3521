// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch_costs.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
constexpr char kKernel[] = "kernel launched on a stream, back to back";
constexpr char kToDevice[] = "copy to the device";
constexpr char kMemory[] = "device memory, read and written";

// 0: it was not measured, or is in doubt.
double Measured(const Json& probe, const std::string& name) {
  for (const Json& row : probe.value("rows", Json::array())) {
    if (row.value("name", "") == name && row.value("doubt", "?").empty()) {
      return row.value("value", 0.0);
    }
  }
  return 0;
}

double Micros(const Json& probe, const char* name) {
  return Measured(probe, name) * 1e-3;
}

// Of the first matmul in this math: the probe's is square and large.
double MatMulTflops(const Json& probe, MathMode math) {
  for (const Json& row : probe.value("rows", Json::array())) {
    const auto name = row.value("name", "");
    if (row.value("unit", "") == "TFLOP/s" &&
        absl::StrContains(name, ToString(math))) {
      return Measured(probe, name);
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
  cuda.node_us = Micros(probe, kNode);
  cuda.graph_launch_us = Micros(probe, kLaunch);
}

absl::StatusOr<KeptProbe> FindKeptProbe(const CudaOptions& options) {
  CudaApi& api = options.cuda == nullptr ? RealCuda() : *options.cuda;
  const auto device = api.Device();
  const Cache cache(kFile, kWhat);
  const std::vector<std::string> kept = cache.Keys();
  if (kept.empty()) {
    return absl::NotFoundError("no GPU was probed: trainer probe measures one");
  }
  KeptProbe found;
  found.here = device.ok();
  found.device = device.ok() ? device->ToString() : kept.back();
  const Json probe = cache.Get(found.device);
  if (!probe.is_object()) {
    return absl::NotFoundError(absl::StrCat(
        found.device, " was not probed: trainer probe measures it"));
  }
  found.node_us = Micros(probe, kNode);
  found.launch_us = Micros(probe, kKernel);
  found.matmul_tflops = MatMulTflops(probe, options.math);
  found.memory_gbs = Measured(probe, kMemory);
  found.to_device_gbs = Measured(probe, kToDevice);
  return found;
}

}  // namespace onestep
