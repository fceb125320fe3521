// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WORD_LIST_H_
#define ONESTEP_TRAINER_WORD2VEC_WORD_LIST_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace onestep {

// Words in the order in which they came, each once, found by hash. A word is
// any bytes. One arena, and 12 to 24 bytes a word beside its own.
class WordList {
 public:
  // False when the word is there already; nothing is then added.
  bool Add(std::string_view word);

  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  // Valid until the next Add. REQUIRES: 0 <= id < size().
  std::string_view operator[](int64_t id) const {
    const uint64_t begin = id == 0 ? 0 : ends_[id - 1];
    return {bytes_.data() + begin, ends_[id] - begin};
  }
  // The word's place, or -1.
  int64_t Find(std::string_view word) const;

 private:
  // The slot that holds `word`, or the empty one where it belongs.
  size_t SlotOf(std::string_view word) const;
  void Grow();

  std::vector<char> bytes_;
  std::vector<uint64_t> ends_;  // of each word in bytes_
  std::vector<int32_t> slots_;  // a power of two; word, or -1: empty
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WORD_LIST_H_
