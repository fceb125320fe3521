// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_PROFILE_REPORT_H_
#define ONESTEP_TRAINER_MEASURE_PROFILE_REPORT_H_

#include <string>

#include "nlohmann/json.hpp"
#include "trainer/measure/profile.h"

namespace onestep {

// A row is null where something is not counted.
nlohmann::ordered_json ToJson(const Profile& profile);

// A table of every worker, with what the step took undisturbed and what the
// profiler itself cost.
std::string ToText(const Profile& profile);

// "1.96 (1.95 to 1.97)", and whether the interval holds 1.
std::string RatioText(const Interval& ratio);

// Of the two, and whether the machine was busy during either.
// REQUIRES: profiles of one call of ProfileSteps.
nlohmann::ordered_json RatioToJson(const Profile& unfused,
                                   const Profile& fused);

// What each call of `fused` took, beside the textbook ops that it came from.
// REQUIRES: profiles of one call of ProfileSteps.
std::string CompareText(const Profile& unfused, const Profile& fused);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_PROFILE_REPORT_H_
