// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_GROUPING_H_
#define ONESTEP_TRAINER_SEARCH_GROUPING_H_

#include <cstdint>

namespace onestep {

// How the trials of one kind are run: many models in one step, each by itself,
// or, by timing both, the faster.
enum class Grouping : uint8_t { kAuto, kVector, kLoop };

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_GROUPING_H_
