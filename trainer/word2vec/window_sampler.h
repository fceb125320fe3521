// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WINDOW_SAMPLER_H_
#define ONESTEP_TRAINER_WORD2VEC_WINDOW_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/random.h"
#include "trainer/word2vec/alias_table.h"
#include "trainer/word2vec/huffman.h"
#include "trainer/word2vec/step_block.h"
#include "trainer/word2vec/word2vec_config.h"

namespace onestep {

// What all samplers of a run read.
struct SamplerSource {
  const Word2vecConfig* config;
  std::span<const int64_t> counts;        // of the vocabulary
  std::span<const uint32_t> keep;         // KeepThresholds
  const AliasTable* negatives = nullptr;  // null with hs
  const HuffmanTree* tree = nullptr;      // null without hs

  // Of a step of the window graph.
  int64_t contexts() const;
  int64_t outputs() const;
  // The most steps that a window makes; a block has room for at least that.
  int64_t steps_of_window() const;
};

// Where a thread has the rows of words and inner nodes. The first `hot` ones,
// which are the most frequent, it has to itself, from row `base` of a table on.
struct RowMap {
  int32_t hot = 0;
  int32_t in_base = 0, out_base = 0;
  // Negatives that are not hot are drawn from one of `classes`, by rank modulo,
  // so that threads do not wait for each other's rows.
  int32_t classes = 1, own_class = 0;

  int32_t In(int32_t id) const { return id < hot ? in_base + id : id; }
  int32_t Out(int32_t id) const { return id < hot ? out_base + id : id; }
};

// Goes through a slice of a token stream: leaves out frequent words, draws each
// window's size and its negatives, and writes down the steps (Mikolov et al.
// 2013; as gensim's word2vec does, but for the numbers drawn). Words left out
// do not count for the distance between others.
class WindowSampler {
 public:
  // `source` must outlive it.
  explicit WindowSampler(const SamplerSource& source);

  // From now on the slice `tokens` (ids, -1 between sentences).
  void Start(std::span<const int32_t> tokens, const Random& random);

  // Fills the block anew, with whole windows; the last words may make none.
  // False: nothing was left, and the block is empty.
  bool Fill(const RowMap& rows, StepBlock& block);

 private:
  void ReadWords(StepBlock& block);
  void AddWindow(const RowMap& rows, int64_t first, int64_t last,
                 StepBlock& block);
  void AddContexts(const RowMap& rows, int64_t first, int64_t count,
                   StepBlock& block);
  void AddMean(const RowMap& rows, int64_t first, int64_t last,
               StepBlock& block);
  void AddOutputs(const RowMap& rows, StepBlock& block);

  const SamplerSource source_;
  const int64_t window_, num_contexts_, num_outputs_, steps_of_window_;
  std::span<const int32_t> tokens_;
  size_t next_ = 0;
  Random random_{0};
  // Of the sentence at hand the words that are used, from a window before the
  // centre on.
  std::vector<int32_t> words_;
  int64_t centre_ = 0;
  bool sentence_ends_ = true;  // behind words_
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WINDOW_SAMPLER_H_
