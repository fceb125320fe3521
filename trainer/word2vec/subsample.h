// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_SUBSAMPLE_H_
#define ONESTEP_TRAINER_WORD2VEC_SUBSAMPLE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace onestep {

// For each word what its tokens are kept by: a token is used when its word's
// threshold is not below 32 random bits. With t = sample * (sum of counts) a
// word of count c keeps a share of sqrt(t / c) + t / c, at most all.
// A sample of 1 or more is itself the count from which tokens are dropped, as
// in gensim (word2vec.py, prepare_vocab); 0 keeps all.
// REQUIRES: counts >= 1, sample >= 0.
std::vector<uint32_t> KeepThresholds(std::span<const int64_t> counts,
                                     double sample);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_SUBSAMPLE_H_
