// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_VOCABULARY_H_
#define ONESTEP_TRAINER_WORD2VEC_VOCABULARY_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onestep {

// The words that are trained, as bytes, each with its count: id 0 is the most
// frequent. Of equal counts the word that was first seen later comes first, as
// gensim has it. 16 bytes a word beside the words' own bytes; 24 with the
// index.
//
// Thread rule: const functions may run at the same time.
class Vocabulary {
 public:
  // For `size` words of `bytes` in all, so that Add allocates nothing.
  void Reserve(int64_t size, int64_t bytes);
  // Gives `word` the next id. REQUIRES: count is not above the last one's;
  // there is no index yet.
  void Add(std::string_view word, int64_t count);

  int32_t size() const { return static_cast<int32_t>(counts_.size()); }
  // Valid as long as the vocabulary.
  std::string_view word(int32_t id) const {
    return {words_.data() + ends_[id],
            static_cast<size_t>(ends_[id + 1] - ends_[id])};
  }
  int64_t count(int32_t id) const { return counts_[id]; }
  // Descending.
  std::span<const int64_t> counts() const { return counts_; }
  // Tokens of the text that are one of these words: the sum of the counts.
  int64_t total() const { return total_; }
  // The bytes of all words, and where in them each word ends.
  const std::string& words() const { return words_; }
  std::span<const int64_t> ends() const { return std::span(ends_).subspan(1); }

  // What Find needs: 8 bytes a word.
  void BuildIndex();
  // The word's id; -1: there is none. REQUIRES: BuildIndex was called.
  int32_t Find(std::string_view word) const;

 private:
  std::string words_;                // one behind the other
  std::vector<int64_t> ends_ = {0};  // in words_: of word i ends_[i + 1]
  std::vector<int64_t> counts_;
  int64_t total_ = 0;
  std::vector<int32_t> index_;  // open addressing; -1: free
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_VOCABULARY_H_
