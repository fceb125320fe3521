// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/word_list.h"

#include <algorithm>
#include <functional>

namespace onestep {

size_t WordList::SlotOf(std::string_view word) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>()(word) & mask;
  while (slots_[slot] >= 0 && (*this)[slots_[slot]] != word) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void WordList::Grow() {
  slots_.assign(std::max<size_t>(16, slots_.size() * 2), -1);
  for (int64_t id = 0; id < size(); ++id) {
    slots_[SlotOf((*this)[id])] = static_cast<int32_t>(id);
  }
}

bool WordList::Add(std::string_view word) {
  if (2 * (ends_.size() + 1) > slots_.size()) Grow();
  const size_t slot = SlotOf(word);
  if (slots_[slot] >= 0) return false;
  slots_[slot] = static_cast<int32_t>(size());
  bytes_.insert(bytes_.end(), word.begin(), word.end());
  ends_.push_back(bytes_.size());
  return true;
}

int64_t WordList::Find(std::string_view word) const {
  return slots_.empty() ? -1 : slots_[SlotOf(word)];
}

}  // namespace onestep
