// SPDX-License-Identifier: Apache-2.0
// Reads a text as a vocabulary and a stream of its words' ids.
//
// A line is a sentence. Words are separated by space, \t, \n, \v, \f and \r;
// all other bytes, NUL and those of UTF-8 too, belong to words and come out as
// they went in; a byte order mark at the start is skipped. Lines and words may
// have any length: nothing is cut.
#ifndef ONESTEP_TRAINER_WORD2VEC_CORPUS_H_
#define ONESTEP_TRAINER_WORD2VEC_CORPUS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "trainer/word2vec/mapping.h"
#include "trainer/word2vec/vocabulary.h"

namespace onestep {

struct CorpusOptions {
  int64_t min_count = 5;  // words seen less often are left out
  // 0: no limit. Else only so many of the most frequent are kept; of those
  // with equal counts the ones that were first seen later, as the ids go.
  int64_t max_vocab = 0;
  int threads = 1;
  // "": none. Else the file that keeps the result for the next run. One of
  // another text (told by size, times of change and a sample of its bytes), of
  // other options or damaged is replaced, which Corpus::notice says; a file of
  // another kind is refused: FailedPrecondition.
  std::string cache;
  // Called by the calling thread now and then with the bytes that are read.
  std::function<void(int64_t bytes, int64_t of)> progress;
};

// What the text has, before words are left out.
struct CorpusCounts {
  int64_t bytes = 0;
  int64_t lines = 0;   // the last one with or without its newline
  int64_t tokens = 0;  // words, repeated ones too
  int64_t words = 0;   // different ones
};

struct Corpus {
  CorpusCounts counts;
  Vocabulary vocabulary;  // without an index
  // The ids of the tokens that are kept, -1 after each line that has one.
  std::span<const int32_t> tokens;
  Mapping storage;     // of `tokens`
  std::string notice;  // of a cache that was replaced, in one line; or ""
  bool from_cache = false;
};

// The same for any number of threads. Memory beside the result: 4 bytes a
// token that is left out; some 60 bytes and its own a different word and
// thread that sees it.
//
// Errors are one line that begins with the path:
//   NotFound            the file is missing, not a regular one or unreadable
//   DataLoss            it has no words, none that is frequent enough, or is
//                       packed by gzip, xz or zstd
//   FailedPrecondition  the cache cannot be written or is not one
//   ResourceExhausted   memory or threads
// REQUIRES: min_count >= 1, max_vocab >= 0, threads >= 1.
absl::StatusOr<Corpus> ReadCorpus(const std::string& path,
                                  const CorpusOptions& options);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_CORPUS_H_
