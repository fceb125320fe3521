// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/corpus_cache.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/atomic_file.h"
#include "trainer/word2vec/mapping.h"
#include "trainer/word2vec/word_hash.h"

namespace onestep {
namespace {

constexpr char kMagic[] = "onestep corpus ";
constexpr char kVersion = '2';

// The file's beginning. The layout must not change within a version.
struct Header {
  char magic[sizeof(kMagic) - 1];
  char version;
  uint64_t checksum;  // of all that follows
  CorpusKey key;
  CorpusCounts counts;
  int64_t vocabulary;  // words that are kept
  int64_t word_bytes;
  int64_t stream;  // tokens that are kept, and ends of lines
};
static_assert(sizeof(Header) == 128);

class Checksum {
 public:
  void Add(const void* data, size_t bytes) {
    const char* p = static_cast<const char*>(data);
    for (; bytes >= 8; p += 8, bytes -= 8) AddWord(Load8(p));
    AddWord(WordHead({p, bytes}) ^ uint64_t{bytes} << 56);
  }
  uint64_t value() const { return value_; }

 private:
  // Each word's every bit counts, and where it stands.
  void AddWord(uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15;
    value_ ^= value_ >> 32;
  }
  uint64_t value_ = 0;
};

// Of blocks from the first to the last at equal distances: of a small text, all
// of it.
uint64_t SampleOf(std::string_view text) {
  if (text.empty()) return 0;
  constexpr size_t kBlocks = 64, kBlockBytes = 4096;
  const size_t last = text.size() - std::min(text.size(), kBlockBytes);
  Checksum checksum;
  for (size_t i = 0; i < kBlocks; ++i) {
    const std::string_view block =
        text.substr(last * i / (kBlocks - 1), kBlockBytes);
    checksum.Add(block.data(), block.size());
  }
  return checksum.value();
}

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The parts behind the header, in the file's order.
template <typename Visit>
void ForEachPart(const Corpus& corpus, const Visit& visit) {
  const Vocabulary& vocabulary = corpus.vocabulary;
  visit(vocabulary.counts().data(), vocabulary.counts().size_bytes());
  visit(vocabulary.ends().data(), vocabulary.ends().size_bytes());
  visit(corpus.tokens.data(), corpus.tokens.size_bytes());
  visit(vocabulary.words().data(), vocabulary.words().size());
}

const char* AfterChecksum(const Header& header) {
  return reinterpret_cast<const char*>(&header.key);
}
constexpr size_t kCheckedHeader = sizeof(Header) - offsetof(Header, key);

// Whether the parts fill the file.
bool Fits(const Header& header, int64_t file_bytes) {
  const int64_t room = file_bytes - static_cast<int64_t>(sizeof(Header));
  const auto sane = [room](int64_t n) { return n >= 0 && n <= room; };
  return sane(header.vocabulary) && sane(header.stream) &&
         sane(header.word_bytes) &&
         header.vocabulary * 16 + header.stream * 4 + header.word_bytes == room;
}

}  // namespace

CorpusKey MakeCorpusKey(const std::string& path, std::string_view text,
                        const CorpusOptions& options) {
  CorpusKey key = {.text_bytes = static_cast<int64_t>(text.size()),
                   .text_sample = SampleOf(text),
                   .min_count = options.min_count,
                   .max_vocab = options.max_vocab};
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    key.text_mtime_ns = Nanoseconds(info.st_mtim);
    key.text_ctime_ns = Nanoseconds(info.st_ctim);
  }
  return key;
}

absl::StatusOr<CachedCorpus> ReadCorpusCache(const std::string& path,
                                             const CorpusKey& key) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 && errno == ENOENT) return CachedCorpus();
  ASSIGN_OR_RETURN(Mapping file, Mapping::OfFile(path));
  Header header;
  if (file.bytes() < static_cast<int64_t>(sizeof(header)) ||
      std::memcmp(file.data(), kMagic, sizeof(header.magic)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     ": want a cache of a corpus or no file, got "
                     "another kind of file"));
  }
  std::memcpy(&header, file.data(), sizeof(header));
  const auto replace = [&path](absl::string_view why) {
    CachedCorpus none;
    none.notice = absl::StrCat(path, ": a cache ", why, ": read anew");
    return none;
  };
  if (header.version != kVersion) return replace("of another version");
  if (!Fits(header, file.bytes())) return replace("that is not whole");
  if (header.key != key) return replace("of another text or other options");

  Checksum checksum;
  checksum.Add(AfterChecksum(header), kCheckedHeader);
  const char* next = file.data() + sizeof(header);
  const auto take = [&](int64_t bytes) {
    checksum.Add(next, bytes);
    return std::exchange(next, next + bytes);
  };
  const auto* counts =
      reinterpret_cast<const int64_t*>(take(header.vocabulary * 8));
  const auto* ends =
      reinterpret_cast<const int64_t*>(take(header.vocabulary * 8));
  const auto* tokens =
      reinterpret_cast<const int32_t*>(take(header.stream * 4));
  const char* const words = take(header.word_bytes);
  if (checksum.value() != header.checksum) return replace("that is damaged");

  CachedCorpus cached;
  Corpus& corpus = cached.corpus.emplace();
  corpus.counts = header.counts;
  corpus.vocabulary.Reserve(header.vocabulary, header.word_bytes);
  for (int64_t i = 0, begin = 0; i < header.vocabulary; begin = ends[i++]) {
    corpus.vocabulary.Add({words + begin, static_cast<size_t>(ends[i] - begin)},
                          counts[i]);
  }
  corpus.tokens = {tokens, static_cast<size_t>(header.stream)};
  corpus.storage = std::move(file);
  corpus.from_cache = true;
  return cached;
}

absl::Status WriteCorpusCache(const std::string& path, const CorpusKey& key,
                              const Corpus& corpus) {
  const Vocabulary& vocabulary = corpus.vocabulary;
  Header header = {};
  header.version = kVersion;
  header.key = key;
  header.counts = corpus.counts;
  header.vocabulary = vocabulary.size();
  header.word_bytes = static_cast<int64_t>(vocabulary.words().size());
  header.stream = static_cast<int64_t>(corpus.tokens.size());
  std::memcpy(header.magic, kMagic, sizeof(header.magic));
  Checksum checksum;
  checksum.Add(AfterChecksum(header), kCheckedHeader);
  ForEachPart(corpus, [&](const void* data, size_t bytes) {
    checksum.Add(data, bytes);
  });
  header.checksum = checksum.value();

  AtomicFile file(path);
  file.Write(&header, sizeof(header));
  ForEachPart(corpus,
              [&](const void* data, size_t bytes) { file.Write(data, bytes); });
  return file.Commit();
}

}  // namespace onestep
