// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_GPU_FLAGS_H_
#define ONESTEP_TRAINER_GPU_FLAGS_H_

#include "trainer/config.h"
#include "trainer/flag_set.h"

namespace onestep {

// The group GPU of the verb that `config` names.
void AddGpuFlags(Config& config, FlagSet& flags);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_GPU_FLAGS_H_
