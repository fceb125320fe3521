// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_ALIAS_TABLE_H_
#define ONESTEP_TRAINER_WORD2VEC_ALIAS_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace onestep {

// Draws words with probability proportional to count^power by one load each
// (Walker 1977, Vose 1991). 8 bytes a word.
class AliasTable {
 public:
  // REQUIRES: one count or more, each >= 1; at most 2^31 - 1 of them.
  AliasTable(std::span<const int64_t> counts, double power);

  // The word of 64 random bits.
  int32_t Draw(uint64_t random) const {
    // The product's high half is the cell, the low one where in it.
    const auto product = static_cast<unsigned __int128>(random) * cells_.size();
    const auto index = static_cast<uint32_t>(product >> 64);
    const Cell cell = cells_[index];
    const auto point = static_cast<uint32_t>(product >> 32);
    // No branch: it would be mispredicted every third time.
    const uint32_t own = -static_cast<uint32_t>(point < cell.threshold);
    return static_cast<int32_t>(cell.alias ^ ((cell.alias ^ index) & own));
  }

  // The probability that Draw gives each word, exactly as the table has it.
  std::vector<double> Probabilities() const;

 private:
  // A cell gives its own word for points below the threshold, of 2^32.
  struct Cell {
    uint32_t threshold;
    uint32_t alias;
  };
  std::vector<Cell> cells_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_ALIAS_TABLE_H_
