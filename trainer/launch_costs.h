// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_LAUNCH_COSTS_H_
#define ONESTEP_TRAINER_LAUNCH_COSTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "nlohmann/json.hpp"
#include "runtime/cuda/cuda_probe.h"

namespace onestep {

// Keeps what a probe of the GPU measured, for the runs to come (cache.h).
void KeepProbe(const CudaProbe& probe, const nlohmann::ordered_json& json);

// Takes the costs of launches from the probe that was kept of this GPU, if one
// was, so that a graph is as long as its launch is dear.
void UseKeptProbe(CudaOptions& cuda);

// What a probe that was kept says of a GPU; 0: it does not say.
struct KeptProbe {
  std::string device;
  bool here = false;  // the GPU of this machine; else of the probe kept last
  // Of a kernel in a graph, and of one that is launched by itself.
  double node_us = 0, launch_us = 0;
  double matmul_tflops = 0;  // of a large matmul in options.math
  double memory_gbs = 0;     // the device's, read and written
  double to_device_gbs = 0;  // from the host
};
// NotFound with the reason: none was kept, or none of this machine's GPU.
absl::StatusOr<KeptProbe> FindKeptProbe(const CudaOptions& options);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_LAUNCH_COSTS_H_
