// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/corpus.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/cpu/affinity.h"
#include "runtime/cpu/team.h"
#include "trainer/word2vec/corpus_cache.h"
#include "trainer/word2vec/plain_text.h"
#include "trainer/word2vec/tokenize.h"
#include "trainer/word2vec/word_counter.h"

namespace onestep {
namespace {

constexpr int64_t kPieceBytes = 4 << 20;
constexpr int32_t kLineEnd = -1;
constexpr int32_t kLeftOut = -2;

// A thread's part of the text. Its ids are the words' numbers in `words`, then
// in the vocabulary.
struct Slice {
  const char* begin;
  const char* end;  // at a separator or the end of the text
  int32_t* ids;     // with room for as many as the slice has bytes
  int64_t size = 0;
  int64_t lines = 0;  // newlines
  int64_t tokens = 0;
  WordCounter words;
  std::vector<int32_t> number;  // of each word among those of slice 0, then
                                // in the vocabulary
};

std::vector<Slice> Cut(const Mapping& text, int threads, int32_t* ids) {
  std::vector<Slice> slices(threads);
  const char* const end = text.data() + text.bytes();
  const char* begin = SkipByteOrderMark(text.text()).data();
  for (int t = 0; t < threads; ++t) {
    const char* const near = text.data() + text.bytes() / threads * (t + 1);
    slices[t].begin = begin;
    slices[t].ids = ids + (begin - text.data());
    begin = t + 1 == threads ? end : NextSeparator(std::max(begin, near), end);
    slices[t].end = begin;
  }
  return slices;
}

// Counts the slice's words and writes their numbers. `done(bytes)` is called
// after every piece.
template <typename Done>
void Count(Mapping* text, Slice* slice, const Done& done) {
  const char* const limit = text->data() + text->bytes();
  WordCounter& words = slice->words;
  int32_t* next = slice->ids;
  for (const char* begin = slice->begin; begin < slice->end;) {
    const int64_t bytes = std::min(kPieceBytes, slice->end - begin);
    const char* const end = NextSeparator(begin + bytes, slice->end);
    Tokenize(
        begin, end, limit,
        [&](uint64_t head, std::string_view word) {
          *next++ = words.Add(head, word);
        },
        [&] { *next++ = kLineEnd; });
    text->Release(begin - text->data(), end - text->data());
    done(end - begin);
    begin = end;
  }
  slice->size = next - slice->ids;
}

// From the words' numbers to ids, without the words that are left out and
// lines that have none.
void Encode(Slice* slice) {
  int32_t* next = slice->ids;
  int32_t last = kLeftOut;
  for (int64_t i = 0; i < slice->size; ++i) {
    const int32_t number = slice->ids[i];
    const int32_t id = number < 0 ? kLineEnd : slice->number[number];
    slice->lines += number < 0;
    if (id == kLeftOut || (id == kLineEnd && last == kLineEnd)) continue;
    *next++ = last = id;
  }
  slice->tokens = slice->size - slice->lines;
  slice->size = next - slice->ids;
}

// Moves the slices' ids together, to the front of `storage`; returns how many
// they are.
int64_t Join(const std::vector<Slice>& slices, Mapping* storage) {
  int32_t* const ids = storage->as<int32_t>();
  int64_t size = 0;
  for (const Slice& slice : slices) {
    // What ends a line that is empty, or that ended the slice before.
    const bool extra = slice.size > 0 && slice.ids[0] == kLineEnd &&
                       (size == 0 || ids[size - 1] == kLineEnd);
    const int32_t* const end = slice.ids + slice.size;
    for (const int32_t* p = slice.ids + extra; p < end;) {
      const int64_t piece = std::min<int64_t>(kPieceBytes / 4, end - p);
      std::memmove(ids + size, p, piece * sizeof(int32_t));
      size += piece;
      p += piece;
      // What was moved must not take memory twice.
      storage->Release(std::max(size, p - piece - ids) * sizeof(int32_t),
                       (p - ids) * sizeof(int32_t));
    }
  }
  if (size > 0 && ids[size - 1] != kLineEnd) ids[size++] = kLineEnd;
  return size;
}

// The vocabulary of `words`; what id each of them has, or kLeftOut.
Vocabulary Choose(const WordCounter& words, const CorpusOptions& options,
                  std::vector<int32_t>* ids) {
  std::vector<int32_t> kept;
  for (int32_t number = 0; number < words.size(); ++number) {
    if (words.count(number) >= options.min_count) kept.push_back(number);
  }
  std::sort(kept.begin(), kept.end(), [&](int32_t a, int32_t b) {
    const int64_t count_a = words.count(a), count_b = words.count(b);
    return count_a != count_b ? count_a > count_b : a > b;
  });
  if (options.max_vocab > 0 &&
      options.max_vocab < static_cast<int64_t>(kept.size())) {
    kept.resize(options.max_vocab);
  }
  int64_t bytes = 0;
  for (const int32_t number : kept) bytes += words.word_bytes(number);
  Vocabulary vocabulary;
  vocabulary.Reserve(kept.size(), bytes);
  ids->assign(words.size(), kLeftOut);
  std::string buffer;
  for (const int32_t number : kept) {
    (*ids)[number] = vocabulary.size();
    vocabulary.Add(words.Word(number, &buffer), words.count(number));
  }
  return vocabulary;
}

// The words of all slices, in those of the first. A slice's new words follow
// those of the slices before it, so that numbers go as the text does.
void MergeWords(std::vector<Slice>* slices) {
  WordCounter& words = slices->front().words;
  for (auto slice = slices->begin() + 1; slice < slices->end(); ++slice) {
    slice->number = words.Merge(slice->words);
    slice->words = WordCounter();
  }
}

absl::Status NothingKept(const std::string& path, const WordCounter& words,
                         int64_t min_count) {
  if (words.size() == 0) {
    return absl::DataLossError(
        absl::StrCat(path, ": want words, got a file without"));
  }
  int64_t most = 0;
  for (int32_t i = 0; i < words.size(); ++i) {
    most = std::max(most, words.count(i));
  }
  return absl::DataLossError(absl::StrCat(
      path, ": want a word that occurs ", min_count, " times (min-count), got ",
      words.size(), " words with at most ", most));
}

absl::StatusOr<Corpus> Read(const std::string& path, Mapping text,
                            const CorpusOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Team> team,
                   Team::Create(options.threads, Affinity{}));
  Corpus corpus;
  // An id for each byte, and a last line's end; few of the pages are touched.
  ASSIGN_OR_RETURN(corpus.storage,
                   Mapping::OfZeros((text.bytes() + 1) * sizeof(int32_t)));
  int32_t* const ids = corpus.storage.as<int32_t>();
  std::vector<Slice> slices = Cut(text, options.threads, ids);
  std::atomic<int64_t> read = 0;
  team->Run([&](int worker) {
    Count(&text, &slices[worker], [&](int64_t bytes) {
      const int64_t now = read += bytes;
      if (worker == 0 && options.progress) options.progress(now, text.bytes());
    });
  });

  MergeWords(&slices);
  std::vector<int32_t>& number = slices[0].number;
  corpus.vocabulary = Choose(slices[0].words, options, &number);
  if (corpus.vocabulary.size() == 0) {
    return NothingKept(path, slices[0].words, options.min_count);
  }
  corpus.counts.words = slices[0].words.size();
  slices[0].words = WordCounter();
  team->Run([&](int worker) {
    if (worker > 0) {
      for (int32_t& n : slices[worker].number) n = number[n];
    }
    Encode(&slices[worker]);
  });

  const int64_t size = Join(slices, &corpus.storage);
  corpus.storage.Truncate(size * sizeof(int32_t));
  corpus.tokens = {ids, static_cast<size_t>(size)};
  for (const Slice& slice : slices) {
    corpus.counts.lines += slice.lines;
    corpus.counts.tokens += slice.tokens;
  }
  corpus.counts.bytes = text.bytes();
  corpus.counts.lines += text.data()[text.bytes() - 1] != '\n';
  return corpus;
}

}  // namespace

absl::StatusOr<Corpus> ReadCorpus(const std::string& path,
                                  const CorpusOptions& options) {
  CHECK(options.min_count >= 1 && options.max_vocab >= 0 &&
        options.threads >= 1);
  ASSIGN_OR_RETURN(Mapping text, Mapping::OfFile(path));
  RETURN_IF_ERROR(CheckUnpacked(path, text.text()));
  if (options.cache.empty()) return Read(path, std::move(text), options);

  const CorpusKey key = MakeCorpusKey(path, text.text(), options);
  ASSIGN_OR_RETURN(CachedCorpus cached, ReadCorpusCache(options.cache, key));
  if (cached.corpus.has_value()) return *std::move(cached.corpus);
  ASSIGN_OR_RETURN(Corpus corpus, Read(path, std::move(text), options));
  RETURN_IF_ERROR(WriteCorpusCache(options.cache, key, corpus));
  corpus.notice = std::move(cached.notice);
  return corpus;
}

}  // namespace onestep
