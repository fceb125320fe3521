// SPDX-License-Identifier: Apache-2.0
// How good word vectors are by the two usual tests, scored as gensim does:
// words are compared in capital letters, of equal ones the first counts, and
// only the first kFrequentWords are known.
#ifndef ONESTEP_TRAINER_WORD2VEC_EVALUATE_VECTORS_H_
#define ONESTEP_TRAINER_WORD2VEC_EVALUATE_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/word2vec/upper_case.h"
#include "trainer/word2vec/word_space.h"

namespace onestep {

// Cosines of pairs of words against how similar people find them. NaN: fewer
// than two pairs, all alike, or a cosine that is none.
struct PairScores {
  double spearman = 0, pearson = 0;
  int64_t pairs = 0;    // of known words
  int64_t unknown = 0;  // left out
};

// Questions "a is to b as c is to d", right when d is the word nearest to
// b + c - a that is none of the three.
struct QuestionScores {
  std::string section;
  int64_t correct = 0, asked = 0;  // of known words
  int64_t unknown = 0;             // left out

  bool syntactic() const { return section.rfind("gram", 0) == 0; }
  void Add(const QuestionScores& other);
};

class VectorsEvaluator {
 public:
  // `space` must outlive it. Unavailable as UpperCase.
  static absl::StatusOr<VectorsEvaluator> Create(const WordSpace& space);

  // `path` has lines "word TAB word TAB number"; "#" begins a comment.
  // NotFound; DataLoss names file and line.
  absl::StatusOr<PairScores> ScorePairs(const std::string& path) const;

  // `path` has lines ": section" and "a b c d". In the file's order.
  absl::StatusOr<std::vector<QuestionScores>> ScoreQuestions(
      const std::string& path) const;

 private:
  VectorsEvaluator(const WordSpace& space, UpperCase upper);
  // The word's id, or -1.
  int64_t Find(std::string_view word) const;

  const WordSpace* space_;
  UpperCase upper_;
  WordList capitals_;             // of the known words
  std::vector<int64_t> ids_;      // of each, the first word so written
  std::vector<int64_t> same_as_;  // of each known word, likewise
};

// By ranks, equal values sharing the mean of theirs. NaN as above.
// REQUIRES: as many in `a` as in `b`.
double Pearson(const std::vector<double>& a, const std::vector<double>& b);
double Spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_EVALUATE_VECTORS_H_
