// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WORD_VECTORS_H_
#define ONESTEP_TRAINER_WORD2VEC_WORD_VECTORS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/buffer.h"
#include "trainer/word2vec/word_list.h"

namespace onestep {

// Words and vectors that lie in somebody else's memory, such as the first
// `size` rows of a padded table in training: what is written to a file.
// Any value is written, also one that is not finite, which reading refuses.
struct VectorsView {
  int64_t size = 0;
  int64_t dim = 0;
  const float* rows = nullptr;  // f32[size, stride], of which dim are written
  int64_t stride = 0;           // floats from a row to the next
  std::function<std::string_view(int64_t id)> word;
  std::function<int64_t(int64_t id)> count;  // none: not known, written as 0

  const float* row(int64_t id) const { return rows + id * stride; }
};

// What a file held, the most frequent word first where its writer saw to that.
struct WordVectors {
  std::string path;  // of the file
  WordList words;
  std::vector<int64_t> counts;  // of each word; empty: the file has none
  int64_t dim = 0;
  Buffer rows;           // f32[words.size(), dim]
  int64_t repeated = 0;  // rows left out, as their word was there before

  int64_t size() const { return words.size(); }
  const float* row(int64_t id) const { return rows.as<float>() + id * dim; }
  // Valid as long as this is, and is not moved.
  VectorsView View() const {
    VectorsView view{size(),
                     dim,
                     rows.as<float>(),
                     dim,
                     [this](int64_t id) { return words[id]; },
                     nullptr};
    if (!counts.empty()) view.count = [this](int64_t id) { return counts[id]; };
    return view;
  }
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WORD_VECTORS_H_
