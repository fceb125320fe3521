// SPDX-License-Identifier: Apache-2.0
// A text whose words have known similarities, to tell good training from bad
// in little time and without data.
//
// A line has a topic and an inflection. Its tokens are words "w<stem>_<i>" of
// the topic's stems, most often in the line's inflection; companions
// "k<stem>_<n>" of the stem that came last; cues "q<i>_<n>" of the inflection;
// and background "b<n>" of a Zipf distribution, which says nothing. There are
// 20 stems a topic and 6 inflections. Topics and background grow with the text,
// so that a word occurs equally often in short texts and long ones: 5 topics
// for 300,000 tokens, 100 for 6 million.
#ifndef ONESTEP_TRAINER_WORD2VEC_SYNTHETIC_CORPUS_H_
#define ONESTEP_TRAINER_WORD2VEC_SYNTHETIC_CORPUS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace onestep {

// Writes lines of 20 or 21 tokens, the last one with or beyond the `tokens`th.
// Equal arguments give equal bytes. FailedPrecondition "cannot write PATH:
// <reason>".
// REQUIRES: tokens >= 1, here and below.
absl::Status WriteSyntheticCorpus(const std::string& path, int64_t tokens,
                                  uint64_t seed);

// Pairs of words, drawn by the seed, with how alike they are by construction,
// as lines "w0_1\tw0_2\t3" (the format of WordSim-353): 1 the same inflection,
// 2 the same topic, 3 the same stem, 4 the same topic and inflection.
std::string SyntheticPairs(int64_t tokens, uint64_t seed);

// Questions "w0_1 w0_2 w7_1 w7_2", drawn by the seed: two stems in the same two
// inflections, in one section (the format of questions-words.txt).
std::string SyntheticQuestions(int64_t tokens, uint64_t seed);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_SYNTHETIC_CORPUS_H_
