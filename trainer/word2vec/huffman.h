// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_HUFFMAN_H_
#define ONESTEP_TRAINER_WORD2VEC_HUFFMAN_H_

#include <cstdint>
#include <span>
#include <vector>

namespace onestep {

// The binary code of least mean length for words of these counts (Huffman
// 1952), as hierarchical softmax uses it: a word's path leads over inner nodes,
// and its code says at each of them whether it goes on left (0), to the less
// frequent side, or right (1). The inner nodes of V words are 0..V-2 in the
// order in which they are made; the root is V-2. Of equal counts words are
// joined before nodes, which keeps the longest path as short as can be.
// 9 bytes a word.
class HuffmanTree {
 public:
  // No code is longer: counts would then sum to more than 2^63.
  static constexpr int kMaxLength = 96;

  // REQUIRES: one count or more, each >= 1, descending, with a sum below 2^63;
  // at most 2^30 of them.
  explicit HuffmanTree(std::span<const int64_t> counts);

  int words() const { return static_cast<int>(lengths_.size()); }
  // Of a word's path; 0 where it is the only word.
  int length(int32_t word) const { return lengths_[word]; }
  // Of all words.
  int longest() const { return longest_; }

  // Calls visit(i, node, code) for each node of the word's path; i counts from
  // the root, which comes last.
  template <typename Visit>
  void ForEachNode(int32_t word, const Visit& visit) const {
    const int32_t first_inner = words();
    int32_t node = word;
    for (int i = lengths_[word] - 1; i >= 0; --i) {
      const int32_t up = up_[node];
      visit(i, up >> 1, up & 1);
      node = first_inner + (up >> 1);
    }
  }

 private:
  // Of words, then of inner nodes but the root: 2 * parent + code.
  std::vector<int32_t> up_;
  std::vector<uint8_t> lengths_;
  int longest_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_HUFFMAN_H_
