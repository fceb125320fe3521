// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/nonzeros.h"

#include <algorithm>

namespace onestep {

int64_t CountNonzeros(const Dataset& data) {
  return std::ssize(data.images) -
         std::count(data.images.begin(), data.images.end(), 0);
}

double Density(const Dataset& data) {
  if (data.images.empty()) return 0;
  return static_cast<double>(CountNonzeros(data)) /
         static_cast<double>(data.images.size());
}

}  // namespace onestep
