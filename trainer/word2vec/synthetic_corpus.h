// SPDX-License-Identifier: Apache-2.0
// A text whose words have known similarities, to tell good training from bad
// in little time and without data.
//
// Each line has a topic and an inflection. Its tokens are words "w<stem>_<i>"
// of the topic's stems, most often in that inflection; the stem's companions
// "k<stem>_<n>"; cues "q<i>_<n>" of the inflection; and background "b<n>" of a
// Zipf distribution, which says nothing.
#ifndef ONESTEP_TRAINER_WORD2VEC_SYNTHETIC_CORPUS_H_
#define ONESTEP_TRAINER_WORD2VEC_SYNTHETIC_CORPUS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace onestep {

struct SyntheticCorpus {
  int64_t tokens = 6'000'000;
  uint64_t seed = 1;
  // Of 20 stems each. 100 suit 6 million tokens, 5 suit 300,000: a word's
  // count falls with their number.
  int topics = 100;
};

// One sentence of 20 tokens or a few more a line; stops at the first line's end
// with `tokens` or more. FailedPrecondition "cannot write PATH: <reason>".
absl::Status WriteSyntheticCorpus(const std::string& path,
                                  const SyntheticCorpus& corpus);

// Pairs of words with the number of things they share by construction, as
// lines "w0_1\tw0_2\t3" (the format of WordSim-353).
std::string SyntheticPairs(const SyntheticCorpus& corpus);

// Questions "w0_1 w0_2 w7_1 w7_2": two stems in the same two inflections, in
// one section (the format of questions-words.txt).
std::string SyntheticQuestions(const SyntheticCorpus& corpus);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_SYNTHETIC_CORPUS_H_
