// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WORD_COUNTER_H_
#define ONESTEP_TRAINER_WORD2VEC_WORD_COUNTER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/word2vec/word_hash.h"

namespace onestep {

// Counts words; they are numbered in the order in which they first came. Some
// 50 bytes a word, and those of longer ones than 8 bytes behind the first 8.
class WordCounter {
 public:
  WordCounter() : slots_(1 << 10) {}

  // The word's number. REQUIRES: head == WordHead(word).
  int32_t Add(uint64_t head, std::string_view word, int64_t count = 1) {
    const uint32_t hash = HashWord(head, word);
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      const Slot slot = slots_[i];
      if (slot.number < 0) return Insert(i, hash, head, word, count);
      if (slot.hash == hash && Is(entries_[slot.number], head, word)) {
        entries_[slot.number].count += count;
        return slot.number;
      }
    }
  }

  int32_t size() const { return static_cast<int32_t>(entries_.size()); }
  int64_t count(int32_t number) const { return entries_[number].count; }
  int64_t word_bytes(int32_t number) const { return entries_[number].size; }
  // In *buffer.
  std::string_view Word(int32_t number, std::string* buffer) const;

  // Adds all words of `other` with their counts: what number each of them has
  // here.
  std::vector<int32_t> Merge(const WordCounter& other);

 private:
  struct Slot {
    uint32_t hash;
    int32_t number = -1;  // free
  };
  struct Entry {
    uint64_t head;
    int64_t size;
    int64_t tail;  // where in tails_ the bytes behind the head are
    int64_t count;
  };

  bool Is(const Entry& entry, uint64_t head, std::string_view word) const {
    return entry.head == head &&
           entry.size == static_cast<int64_t>(word.size()) &&
           (word.size() <= 8 ||
            std::memcmp(tails_.data() + entry.tail, word.data() + 8,
                        word.size() - 8) == 0);
  }
  int32_t Insert(size_t slot, uint32_t hash, uint64_t head,
                 std::string_view word, int64_t count);
  void Grow();

  std::vector<Slot> slots_;  // open addressing, a power of two of them
  std::vector<Entry> entries_;
  std::string tails_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WORD_COUNTER_H_
