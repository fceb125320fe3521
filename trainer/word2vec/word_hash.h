// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WORD_HASH_H_
#define ONESTEP_TRAINER_WORD2VEC_WORD_HASH_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace onestep {

static_assert(std::endian::native == std::endian::little);

inline uint64_t Load8(const char* p) {
  uint64_t bytes;
  std::memcpy(&bytes, p, sizeof(bytes));
  return bytes;
}

// A word's first 8 bytes, with zeros behind a shorter one's.
inline uint64_t WordHead(std::string_view word) {
  uint64_t head = 0;
  std::memcpy(&head, word.data(), std::min<size_t>(8, word.size()));
  return head;
}

// All 32 bits depend on all bytes, by products of 64 bits folded to one half
// (as in https://github.com/wangyi-fudan/wyhash). The same in every run.
// REQUIRES: head == WordHead(word).
inline uint32_t HashWord(uint64_t head, std::string_view word) {
  constexpr uint64_t kA = 0xa0761d6478bd642f, kB = 0xe7037ed1a0b428db;
  const auto fold = [](uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^
           static_cast<uint64_t>(product >> 64);
  };
  const size_t size = word.size();
  uint64_t hash = fold(head ^ kA, size ^ kB);
  // The last load may begin in the one before: it ends where the word does.
  for (size_t i = 8; i < size; i += 8) {
    hash = fold(hash ^ Load8(word.data() + std::min(i, size - 8)), kB);
  }
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WORD_HASH_H_
