// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MACHINE_INFO_H_
#define ONESTEP_TRAINER_MACHINE_INFO_H_

#include "nlohmann/json.hpp"

namespace onestep {

// What any time that is measured depends on besides what is run: version,
// build, libraries, CPU, caches and how OpenMP's threads wait.
nlohmann::ordered_json BuildAndCpu();

// Likewise, with the system, and the GPUs or why there is none.
nlohmann::ordered_json MachineInfo();

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MACHINE_INFO_H_
