// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WORD2VEC_CONFIG_H_
#define ONESTEP_TRAINER_WORD2VEC_WORD2VEC_CONFIG_H_

#include <cstdint>
#include <string>

namespace onestep {

// What flags of these names may ask for, at most.
inline constexpr int64_t kMaxSize = 1 << 14;
inline constexpr int64_t kMaxWindow = 1 << 10;
inline constexpr int64_t kMaxNegative = 1 << 10;

// How often negative words are drawn: for a window, for every so many contexts
// of one, or for each context.
struct Negatives {
  static constexpr int64_t kShared = 0;
  static constexpr int64_t kExact = 1;
  int64_t contexts = kShared;  // that share a draw

  std::string ToString() const {  // "shared", "exact", "group:3"
    if (contexts == kShared) return "shared";
    if (contexts == kExact) return "exact";
    return "group:" + std::to_string(contexts);
  }
};

// What each context of CBOW's mean is given: the whole gradient of the mean, as
// word2vec and gensim do, or its share, which is the gradient of the loss.
enum class CbowGradient : uint8_t { kWord2vec, kExact };

// Of the file of vectors; see vectors_file.h.
enum class VectorsFormat : uint8_t { kBinary, kText, kSafetensors };

// The names and defaults that word2vec and fastText users know.
struct Word2vecConfig {
  std::string corpus;     // a text, a sentence a line
  std::string cache;      // of the encoded corpus; "": none
  int64_t min_count = 5;  // words seen less often are left out
  int64_t max_vocab = 0;  // 0: no limit
  int64_t size = 100;     // of a vector
  int64_t window = 5;     // words on each side, at most
  int64_t negative = 5;   // words drawn against each centre
  Negatives negatives;
  bool cbow = false;  // else skip-gram
  bool hs = false;    // hierarchical softmax, in place of negatives
  CbowGradient cbow_gradient = CbowGradient::kWord2vec;
  double sample = 1e-3;  // of subsampling frequent words; 0: none
  double lr = 0.025;     // falls with the words done
  double min_lr = 1e-4;
  bool deterministic = false;
  int64_t hot_rows = -1;  // a thread's own; -1: as fits the threads
  int64_t max_words = 0;  // stop after so many words; 0: never
  VectorsFormat format = VectorsFormat::kBinary;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WORD2VEC_CONFIG_H_
