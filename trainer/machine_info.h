// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MACHINE_INFO_H_
#define ONESTEP_TRAINER_MACHINE_INFO_H_

#include "nlohmann/json.hpp"

namespace onestep {

// What this machine and this build can do: version, system, CPU, caches,
// libraries, GPUs or why there is none.
nlohmann::ordered_json MachineInfo();

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MACHINE_INFO_H_
