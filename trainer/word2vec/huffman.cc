// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/huffman.h"

#include <algorithm>

#include "runtime/base/status.h"

namespace onestep {

HuffmanTree::HuffmanTree(std::span<const int64_t> counts)
    : lengths_(counts.size()) {
  CHECK(!counts.empty() && counts.size() <= size_t{1} << 30 &&
        std::is_sorted(counts.rbegin(), counts.rend()));
  const auto words = static_cast<int32_t>(counts.size());
  const int32_t inner = words - 1;
  up_.resize(words + inner);
  // Inner nodes come in order of their counts: the two smallest of all are
  // among the last words not joined yet and the first nodes.
  std::vector<int64_t> sums(inner);
  int32_t word = words - 1;
  int32_t node = 0;
  for (int32_t parent = 0; parent < inner; ++parent) {
    for (const int32_t code : {0, 1}) {
      const bool is_word =
          word >= 0 && (node == parent || counts[word] <= sums[node]);
      sums[parent] += is_word ? counts[word] : sums[node];
      up_[is_word ? word-- : words + node++] = 2 * parent + code;
    }
  }
  // A parent has a higher number than its children: the root's length first.
  std::vector<uint8_t> inner_lengths(inner);
  const auto length = [&](int32_t child) {
    return static_cast<uint8_t>(inner_lengths[up_[child] >> 1] + 1);
  };
  for (int32_t i = inner - 2; i >= 0; --i) inner_lengths[i] = length(words + i);
  if (inner == 0) return;
  for (int32_t i = 0; i < words; ++i) {
    lengths_[i] = length(i);
    longest_ = std::max(longest_, int{lengths_[i]});
  }
}

}  // namespace onestep
