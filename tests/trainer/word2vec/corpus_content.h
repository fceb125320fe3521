// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_TRAINER_WORD2VEC_CORPUS_CONTENT_H_
#define ONESTEP_TESTS_TRAINER_WORD2VEC_CORPUS_CONTENT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/word2vec/corpus.h"

namespace onestep {

using Counts = std::vector<std::pair<std::string, int64_t>>;

// What a test compares: all of a corpus.
struct Content {
  Counts words;
  std::vector<int32_t> tokens;
  int64_t bytes, lines, read, distinct;

  bool operator==(const Content&) const = default;
};

inline Counts WordsOf(const Corpus& corpus) {
  Counts words;
  for (int32_t id = 0; id < corpus.vocabulary.size(); ++id) {
    words.emplace_back(corpus.vocabulary.word(id), corpus.vocabulary.count(id));
  }
  return words;
}

inline Content ContentOf(const Corpus& corpus) {
  const CorpusCounts& counts = corpus.counts;
  return {WordsOf(corpus), {corpus.tokens.begin(), corpus.tokens.end()},
          counts.bytes,    counts.lines,
          counts.tokens,   counts.words};
}

}  // namespace onestep

#endif  // ONESTEP_TESTS_TRAINER_WORD2VEC_CORPUS_CONTENT_H_
