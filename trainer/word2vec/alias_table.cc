// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/alias_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/status.h"

namespace onestep {
namespace {

constexpr double kPoints = 0x1p32;  // of a cell

uint32_t Threshold(double share) {
  constexpr double kMax = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::min(std::round(share * kPoints), kMax));
}

}  // namespace

AliasTable::AliasTable(std::span<const int64_t> counts, double power)
    : cells_(counts.size()) {
  CHECK(!counts.empty() &&
        counts.size() <= std::numeric_limits<int32_t>::max());
  std::vector<double> share(counts.size());  // of a cell, 1 on average
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    sum += share[i] = std::pow(static_cast<double>(counts[i]), power);
  }
  // The words with less than a cell grow from the front, those with more from
  // the back: a small one's cell is filled up by a large one's word.
  std::vector<uint32_t> order(counts.size());
  size_t small = 0, large = order.size();
  for (uint32_t i = 0; i < order.size(); ++i) {
    share[i] *= static_cast<double>(counts.size()) / sum;
    order[share[i] < 1 ? small++ : --large] = i;
  }
  while (small > 0 && large < order.size()) {
    const uint32_t taker = order[--small], giver = order[large];
    cells_[taker] = {Threshold(share[taker]), giver};
    share[giver] -= 1 - share[taker];
    if (share[giver] < 1) {
      order[small++] = giver;
      ++large;
    }
  }
  // Rounding leaves cells that are full but for a bit.
  const auto fill = [&](uint32_t i) { cells_[i] = {Threshold(1), i}; };
  std::for_each(order.begin(), order.begin() + small, fill);
  std::for_each(order.begin() + large, order.end(), fill);
}

std::vector<double> AliasTable::Probabilities() const {
  std::vector<double> probabilities(cells_.size());
  for (size_t i = 0; i < cells_.size(); ++i) {
    const double own = cells_[i].threshold / kPoints;
    probabilities[i] += own / static_cast<double>(cells_.size());
    probabilities[cells_[i].alias] +=
        (1 - own) / static_cast<double>(cells_.size());
  }
  return probabilities;
}

}  // namespace onestep
