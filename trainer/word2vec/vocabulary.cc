// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/vocabulary.h"

#include "runtime/base/status.h"
#include "trainer/word2vec/word_hash.h"

namespace onestep {
namespace {

// The slot to look at first: no power of two has to fit.
size_t FirstSlot(std::string_view word, size_t slots) {
  return uint64_t{HashWord(WordHead(word), word)} * slots >> 32;
}

}  // namespace

void Vocabulary::Reserve(int64_t size, int64_t bytes) {
  words_.reserve(bytes);
  ends_.reserve(size + 1);
  counts_.reserve(size);
}

void Vocabulary::Add(std::string_view word, int64_t count) {
  CHECK(index_.empty() && (counts_.empty() || count <= counts_.back()));
  words_.append(word.data(), word.size());
  ends_.push_back(words_.size());
  counts_.push_back(count);
  total_ += count;
}

void Vocabulary::BuildIndex() {
  const size_t slots = 2 * counts_.size();
  index_.assign(slots, -1);
  for (int32_t id = 0; id < size(); ++id) {
    size_t slot = FirstSlot(word(id), slots);
    while (index_[slot] >= 0) slot = slot + 1 == slots ? 0 : slot + 1;
    index_[slot] = id;
  }
}

int32_t Vocabulary::Find(std::string_view word) const {
  const size_t slots = index_.size();
  CHECK(slots == 2 * counts_.size());
  if (slots == 0) return -1;
  size_t slot = FirstSlot(word, slots);
  while (index_[slot] >= 0 && this->word(index_[slot]) != word) {
    slot = slot + 1 == slots ? 0 : slot + 1;
  }
  return index_[slot];
}

}  // namespace onestep
