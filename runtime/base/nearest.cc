// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/nearest.h"

#include <algorithm>
#include <numeric>

namespace onestep {

int EditDistance(absl::string_view a, absl::string_view b) {
  // row[j]: the distance of the first i characters of `a` to the first j of
  // `b`.
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string NearestOf(absl::string_view word,
                      const std::vector<std::string>& candidates) {
  const auto nearest =
      std::min_element(candidates.begin(), candidates.end(),
                       [word](const std::string& a, const std::string& b) {
                         return EditDistance(word, a) < EditDistance(word, b);
                       });
  return nearest == candidates.end() ? "" : *nearest;
}

}  // namespace onestep
