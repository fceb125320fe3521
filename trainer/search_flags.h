// SPDX-License-Identifier: Apache-2.0
// The flags of the verb search alone.
#ifndef ONESTEP_TRAINER_SEARCH_FLAGS_H_
#define ONESTEP_TRAINER_SEARCH_FLAGS_H_

#include "absl/status/status.h"
#include "trainer/config.h"
#include "trainer/flag_set.h"

namespace onestep {

// What a trial may be: the groups Model and Optimizer.
void AddSearchSpace(Config& config, FlagSet& flags);

// How it is searched, and what is kept.
void AddSearchRun(Config& config, FlagSet& flags);

// Of the verb search, else nothing: --trials alone is --sample random.
// InvalidArgument names a flag that says nothing beside the others.
absl::Status SettleSearch(Config& config, const FlagSet& flags);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_FLAGS_H_
