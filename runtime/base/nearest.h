// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_NEAREST_H_
#define ONESTEP_RUNTIME_BASE_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace onestep {

// Letters to insert, delete or replace to turn `a` into `b` (Levenshtein).
int EditDistance(absl::string_view a, absl::string_view b);

// The candidate nearest to `word`, the first of several; "" of none.
std::string NearestOf(absl::string_view word,
                      const std::vector<std::string>& candidates);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_NEAREST_H_
