// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_LAUNCH_COSTS_H_
#define ONESTEP_TRAINER_LAUNCH_COSTS_H_

#include "compiler/compiler.h"
#include "nlohmann/json.hpp"
#include "runtime/cuda_probe.h"

namespace onestep {

// Keeps what a probe of the GPU measured, for the runs to come (cache.h).
void KeepProbe(const CudaProbe& probe, const nlohmann::ordered_json& json);

// Takes the costs of launches from the probe that was kept of this GPU, if one
// was, so that a graph is as long as its launch is dear.
void UseKeptProbe(CudaOptions& cuda);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_LAUNCH_COSTS_H_
