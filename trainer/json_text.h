// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_JSON_TEXT_H_
#define ONESTEP_TRAINER_JSON_TEXT_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace onestep {

// For output: in one line, or with so many spaces a level. What is no UTF-8,
// as a path may be, has U+FFFD in its place; dump() throws.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_JSON_TEXT_H_
