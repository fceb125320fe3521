// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_FLAG_RULES_H_
#define ONESTEP_TRAINER_FLAG_RULES_H_

#include "absl/status/status.h"
#include "trainer/config.h"
#include "trainer/flag_set.h"

namespace onestep {

// Whether the flags that were given go together: InvalidArgument names one that
// says nothing beside the others, and what it wants with it.
absl::Status CheckTogether(const Config& config, const FlagSet& flags);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_FLAG_RULES_H_
