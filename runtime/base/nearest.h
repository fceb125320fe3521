// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_NEAREST_H_
#define ONESTEP_RUNTIME_BASE_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace onestep {

// The Levenshtein distance: the least number of characters to insert, delete or
// replace to turn `a` into `b`.
int EditDistance(absl::string_view a, absl::string_view b);

// The candidate with the least distance to `word`, the first one in a tie; ""
// when there are no candidates.
std::string NearestOf(absl::string_view word,
                      const std::vector<std::string>& candidates);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_NEAREST_H_
