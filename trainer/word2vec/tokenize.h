// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_TOKENIZE_H_
#define ONESTEP_TRAINER_WORD2VEC_TOKENIZE_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "trainer/word2vec/word_hash.h"

namespace onestep {

inline bool IsSeparator(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// 0x80 in each of 8 bytes that is a separator, 0 in the others.
inline uint64_t Separators(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101, kLow = 0x7f * kOnes;
  // No sum below carries into the next byte.
  const uint64_t low = bytes & kLow;
  const uint64_t not_space = (low ^ ' ' * kOnes) + kLow;
  const uint64_t from_tab = low + (0x80 - '\t') * kOnes;
  const uint64_t beyond_return = low + (0x80 - '\r' - 1) * kOnes;
  return ((from_tab & ~beyond_return) | ~not_space) & ~bytes & ~kLow;
}

// Calls on_word(head, word) for each word in [begin, end), with its WordHead,
// and on_newline() for each '\n', in order. Looks no further than `limit`.
// REQUIRES: begin <= end <= limit; no word crosses `end`.
template <typename OnWord, typename OnNewline>
void Tokenize(const char* begin, const char* end, const char* limit,
              const OnWord& on_word, const OnNewline& on_newline) {
  // Behind the limit all is space.
  const auto load = [limit](const char* p) {
    if (limit - p >= 8) return Load8(p);
    uint64_t bytes = 0x2020202020202020;
    std::memcpy(&bytes, p, limit - p);
    return bytes;
  };
  for (const char* p = begin; p < end;) {
    if (IsSeparator(*p)) {
      if (*p == '\n') on_newline();
      ++p;
      continue;
    }
    const char* const word = p;
    uint64_t head = load(p);
    uint64_t separators = Separators(head);
    if (separators != 0) {  // the word has 1 to 7 bytes
      const int bits = std::countr_zero(separators) & ~7;
      head &= ~uint64_t{0} >> (64 - bits);
      p += bits / 8;
    } else {
      do {
        p += 8;
        separators = Separators(load(p));
      } while (separators == 0);
      p += std::countr_zero(separators) / 8;
    }
    on_word(head, std::string_view(word, p - word));
  }
}

// The first separator at or behind `p`, else `end`.
inline const char* NextSeparator(const char* p, const char* end) {
  while (p < end && !IsSeparator(*p)) ++p;
  return p;
}

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_TOKENIZE_H_
