// SPDX-License-Identifier: Apache-2.0
// A search and its trials as flags.
#ifndef ONESTEP_TRAINER_SEARCH_TRIAL_CONFIG_H_
#define ONESTEP_TRAINER_SEARCH_TRIAL_CONFIG_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "trainer/config.h"
#include "trainer/search/trial.h"

namespace onestep {

// What `trainer train` is to be asked for to train this trial of the search
// alone; on the CPU it then has the same bits. On a GPU dispatch and tier stay
// as they are: not every kind of trial can have each. `density` is the data's,
// by which an input that is auto is decided (trial_input.h).
Config ConfigOfTrial(const Config& search, const Trial& trial, double density);

// "trainer train --model 784-128-10 ...": all that is not as it is by default.
// `data` is what --data says, "" if it was not given. For a shell.
std::string TrainCommandLine(const Config& config, const std::string& data);

// "trainer search ...", as it was given. For a shell.
std::string GivenCommandLine(const Config& config);

// What the search was asked to do, by flag name, and its "command".
// REQUIRES: the model has widths.
nlohmann::ordered_json SearchConfigToJson(const Config& config);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_TRIAL_CONFIG_H_
