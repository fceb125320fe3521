// SPDX-License-Identifier: Apache-2.0
// Files of word vectors, as word2vec, gensim, fastText and GloVe write and
// read them. V words of d values each, little-endian where binary:
//   binary       "V d\n", then of each word: itself, a space, its d floats
//                and "\n", which others may leave out
//   text         "V d\n", then of each word: itself and its d values, a space
//                before each, "\n"; the shortest decimals that are the same
//                floats. fastText's .vec has one more space before "\n";
//                GloVe's has no first line
//   safetensors  tensor vectors f32[V,d]; the words are in the vocabulary file
//                beside it
//   vocabulary   "word count\n" of each word
// A word is any bytes but space and newline.
#ifndef ONESTEP_TRAINER_WORD2VEC_VECTORS_FILE_H_
#define ONESTEP_TRAINER_WORD2VEC_VECTORS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/word2vec/word_vectors.h"

namespace onestep {

// Names in the folder of --out, of which a run writes one.
inline constexpr char kVectorsFile[] = "vectors.bin";
inline constexpr char kVectorsTextFile[] = "vectors.txt";
inline constexpr char kVectorsTensorFile[] = "vectors.safetensors";
inline constexpr char kVocabularyFile[] = "vectors.vocab";  // beside each

// Each replaces `path` in one step: who reads it finds the old file or the
// new. FailedPrecondition "cannot write PATH: <reason>"; InvalidArgument names
// a word with a space or a newline in it, and nothing is then written.
absl::Status WriteVectorsBinary(const std::string& path,
                                const VectorsView& vectors);
// Formats on `threads` threads.
absl::Status WriteVectorsText(const std::string& path,
                              const VectorsView& vectors, int threads);
// Without the words: they are read from the vocabulary file beside it.
absl::Status WriteVectorsSafetensors(const std::string& path,
                                     const VectorsView& vectors);
absl::Status WriteVocabulary(const std::string& path,
                             const VectorsView& vectors);

// The vocabulary file beside a file of vectors: "a/b.vocab" of
// "a/b.safetensors".
std::string VocabularyPath(const std::string& path);

// Reads any of the four, told apart by what is in them, on `threads` threads.
// `path` is a file, or a folder with one of the names above. A word that comes
// again is left out, and counted. NotFound: there is no such file;
// InvalidArgument: the folder has two; DataLoss names file and row, line or
// word and what was wanted, also of values that are not finite;
// ResourceExhausted.
absl::StatusOr<WordVectors> ReadVectors(const std::string& path, int threads);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_VECTORS_FILE_H_
