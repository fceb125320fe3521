// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_TRAINER_WORD2VEC_SMALL_VECTORS_H_
#define ONESTEP_TESTS_TRAINER_WORD2VEC_SMALL_VECTORS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trainer/word2vec/word_vectors.h"

namespace onestep {

// As if read from a file "small". REQUIRES: a row at least, all of one length.
inline WordVectors SmallVectors(
    const std::vector<std::pair<std::string, std::vector<float>>>& rows) {
  WordVectors vectors;
  vectors.path = "small";
  vectors.dim = std::ssize(rows[0].second);
  vectors.rows =
      Buffer::Create(rows.size() * vectors.dim * sizeof(float)).value();
  float* to = vectors.rows.as<float>();
  for (const auto& [word, row] : rows) {
    EXPECT_TRUE(vectors.words.Add(word));
    to = std::copy(row.begin(), row.end(), to);
  }
  return vectors;
}

}  // namespace onestep

#endif  // ONESTEP_TESTS_TRAINER_WORD2VEC_SMALL_VECTORS_H_
