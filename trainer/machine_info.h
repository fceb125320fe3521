// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MACHINE_INFO_H_
#define ONESTEP_TRAINER_MACHINE_INFO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace onestep {

// What any time that is measured depends on besides what is run: version,
// build, libraries, CPU, caches and how OpenMP's threads wait.
nlohmann::ordered_json BuildAndCpu();

// Likewise, with the system, and the GPUs or why there is none.
nlohmann::ordered_json MachineInfo();

// A line per GPU, at least one: "NVIDIA H200, 132 SMs, sm_90, 139 GiB".
// Unavailable with the reason: no driver, no device, built without CUDA.
absl::StatusOr<std::vector<std::string>> GpuNames();

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MACHINE_INFO_H_
