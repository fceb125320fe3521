// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WORD_SPACE_H_
#define ONESTEP_TRAINER_WORD2VEC_WORD_SPACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/word2vec/word_vectors.h"

namespace onestep {

// Words that are neither counted nor sorted go by their place: the first are
// the most frequent.
inline constexpr int64_t kFrequentWords = 300'000;

struct Neighbour {
  int64_t word = 0;
  float cosine = 0;
};

// A sum of the unit vectors of words: b + c - a of "a is to b as c is to ?".
struct Direction {
  std::vector<int64_t> plus, minus;
};

// Word vectors as directions: each row scaled to length 1, so that a product
// is a cosine. A row without one, of zeros or not all finite, stays as it is.
class WordSpace {
 public:
  // Of these vectors, scaled where they lie.
  WordSpace(WordVectors vectors, int threads);

  const WordVectors& vectors() const { return vectors_; }
  int64_t size() const { return vectors_.size(); }
  std::string_view word(int64_t id) const { return vectors_.words[id]; }

  // InvalidArgument names the word, the file and the most similar spellings.
  absl::StatusOr<int64_t> Find(const std::string& word) const;

  double Cosine(int64_t a, int64_t b) const;

  // Of each direction the `top` nearest of the first `size` words, the best
  // first, without those it is made of; of equals the earlier word. Fewer
  // where there are no more with a cosine. Compiles one product of a block of
  // directions with the rows.
  absl::StatusOr<std::vector<std::vector<Neighbour>>> Nearest(
      const std::vector<Direction>& directions, int64_t top,
      int64_t size) const;

 private:
  void SumUnits(const Direction& direction, float* sum) const;

  WordVectors vectors_;
  int threads_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WORD_SPACE_H_
