// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/word_counter.h"

#include <limits>

#include "runtime/base/status.h"

namespace onestep {

std::string_view WordCounter::Word(int32_t number, std::string* buffer) const {
  const Entry& entry = entries_[number];
  const size_t size = entry.size, in_head = std::min<size_t>(8, size);
  buffer->assign(reinterpret_cast<const char*>(&entry.head), in_head);
  buffer->append(tails_, entry.tail, size - in_head);
  return *buffer;
}

std::vector<int32_t> WordCounter::Merge(const WordCounter& other) {
  std::vector<int32_t> numbers(other.size());
  std::string buffer;
  for (int32_t i = 0; i < other.size(); ++i) {
    const Entry& entry = other.entries_[i];
    numbers[i] = Add(entry.head, other.Word(i, &buffer), entry.count);
  }
  return numbers;
}

int32_t WordCounter::Insert(size_t slot, uint32_t hash, uint64_t head,
                            std::string_view word, int64_t count) {
  // 2^31 words would take 100 GB before.
  CHECK(entries_.size() < std::numeric_limits<int32_t>::max());
  const int32_t number = size();
  slots_[slot] = {hash, number};
  const int64_t tail = tails_.size();
  if (word.size() > 8) tails_.append(word.data() + 8, word.size() - 8);
  entries_.push_back({head, static_cast<int64_t>(word.size()), tail, count});
  if (entries_.size() * 3 > slots_.size() * 2) Grow();
  return number;
}

void WordCounter::Grow() {
  std::vector<Slot> slots(slots_.size() * 2);
  const size_t mask = slots.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.number < 0) continue;
    size_t i = slot.hash & mask;
    while (slots[i].number >= 0) i = (i + 1) & mask;
    slots[i] = slot;
  }
  slots_ = std::move(slots);
}

}  // namespace onestep
