// SPDX-License-Identifier: Apache-2.0
// A corpus as a file, for ReadCorpus. In this machine's byte order: a header,
// then of the vocabulary the counts and the words' ends, the tokens, and the
// words' bytes.
#ifndef ONESTEP_TRAINER_WORD2VEC_CORPUS_CACHE_H_
#define ONESTEP_TRAINER_WORD2VEC_CORPUS_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/word2vec/corpus.h"

namespace onestep {

// All that the result depends on.
struct CorpusKey {
  int64_t text_bytes = 0;
  int64_t text_mtime_ns = 0;  // since 1970
  int64_t text_ctime_ns = 0;  // which nobody can set back
  uint64_t text_sample = 0;   // checksum of blocks all over it
  int64_t min_count = 0;
  int64_t max_vocab = 0;

  bool operator==(const CorpusKey&) const = default;
};

// As the file is now. A change while it is read makes the cache another
// text's.
CorpusKey MakeCorpusKey(const std::string& path, std::string_view text,
                        const CorpusOptions& options);

struct CachedCorpus {
  std::optional<Corpus> corpus;  // none: to be read from the text and written
  std::string notice;  // why, in one line that begins with the path; "": there
                       // is no file
};

// FailedPrecondition: the file is there and not a cache, so it must not be
// overwritten; NotFound: it cannot be read.
absl::StatusOr<CachedCorpus> ReadCorpusCache(const std::string& path,
                                             const CorpusKey& key);

// FailedPrecondition "cannot write PATH: <reason>".
absl::Status WriteCorpusCache(const std::string& path, const CorpusKey& key,
                              const Corpus& corpus);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_CORPUS_CACHE_H_
