// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/corpus_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/trainer/word2vec/corpus_content.h"
#include "trainer/word2vec/corpus.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::HasSubstr;
using testing::StartsWith;

class CorpusCacheTest : public testing::Test {
 protected:
  CorpusCacheTest() {
    options_.min_count = 1;
    options_.cache = folder_.path() + "/cache";
    Write("a b a\nlonger-than-eight-bytes a\n");
  }
  void Write(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
  }
  absl::StatusOr<Corpus> Read() const { return ReadCorpus(path_, options_); }

  std::string CacheBytes() const {
    std::ostringstream bytes;
    bytes << std::ifstream(options_.cache, std::ios::binary).rdbuf();
    return bytes.str();
  }
  void WriteCache(const std::string& bytes) const {
    std::ofstream(options_.cache, std::ios::binary) << bytes;
  }
  // The next reading replaces the cache and says why; the one after reads it.
  void ExpectReplaced(const std::string& why) const {
    ASSERT_OK_AND_ASSIGN(const Corpus first, Read());
    EXPECT_FALSE(first.from_cache);
    EXPECT_EQ(first.notice,
              options_.cache + ": a cache " + why + ": read anew");
    ASSERT_OK_AND_ASSIGN(const Corpus second, Read());
    EXPECT_TRUE(second.from_cache);
    EXPECT_EQ(second.notice, "");
    EXPECT_EQ(ContentOf(second), ContentOf(first));
  }

  TempFolder folder_;
  const std::string path_ = folder_.path() + "/text";
  CorpusOptions options_;
};

TEST_F(CorpusCacheTest, IsReadBackAsItWasWritten) {
  ASSERT_OK_AND_ASSIGN(const Corpus first, Read());
  EXPECT_FALSE(first.from_cache);
  EXPECT_EQ(first.notice, "");
  const std::string bytes = CacheBytes();
  ASSERT_OK_AND_ASSIGN(const Corpus second, Read());
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(ContentOf(second), ContentOf(first));
  EXPECT_EQ(CacheBytes(), bytes);
}

TEST_F(CorpusCacheTest, IsReplacedForAnotherTextOrOtherOptions) {
  ASSERT_OK(Read());
  Write("a b a\n");
  ExpectReplaced("of another text or other options");
  std::filesystem::last_write_time(
      path_, std::filesystem::last_write_time(path_) - std::chrono::seconds(1));
  ExpectReplaced("of another text or other options");
  options_.min_count = 2;
  ExpectReplaced("of another text or other options");
  options_.max_vocab = 1;
  ExpectReplaced("of another text or other options");
  options_.threads = 2;
  ASSERT_OK_AND_ASSIGN(const Corpus same, Read());
  EXPECT_TRUE(same.from_cache);
}

TEST_F(CorpusCacheTest, IsNotThatOfAnotherTextOfEqualSizeAndTime) {
  const auto time = std::filesystem::last_write_time(path_);
  ASSERT_OK(Read());
  Write("c d c\nlonger-than-eight-bytes c\n");
  std::filesystem::last_write_time(path_, time);
  ExpectReplaced("of another text or other options");
}

// Two texts may be of one moment.
TEST_F(CorpusCacheTest, SamplesTheTextAllOver) {
  const std::string text(1 << 20, ' ');
  const CorpusKey key = MakeCorpusKey("none", text, options_);
  EXPECT_EQ(MakeCorpusKey("none", text, options_), key);
  constexpr size_t kPart = 32 << 10;
  for (size_t i = 0; i < text.size(); i += kPart) {
    std::string other = text;
    other.replace(i, kPart, kPart, 'x');
    EXPECT_NE(MakeCorpusKey("none", other, options_), key) << i;
  }
}

TEST_F(CorpusCacheTest, IsReplacedWhenItIsDamaged) {
  ASSERT_OK(Read());
  const std::string good = CacheBytes();
  WriteCache(good.substr(0, good.size() - 1));
  ExpectReplaced("that is not whole");
  WriteCache(good + "x");
  ExpectReplaced("that is not whole");
  std::string other = good;
  other[15] = '0';
  WriteCache(other);
  ExpectReplaced("of another version");
  // Each replacing waits for the disk: not every byte.
  for (size_t i = 16; i < good.size(); i += 23) {
    std::string bad = good;
    bad[i] ^= 0x10;
    WriteCache(bad);
    ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read());
    EXPECT_THAT(corpus.notice, HasSubstr(": a cache ")) << "byte " << i;
    EXPECT_EQ(CacheBytes(), good) << "byte " << i;
  }
}

TEST_F(CorpusCacheTest, IsNeverAFileOfAnotherKind) {
  for (const std::string bytes : {"", "my novel\n",
                                  "my novel, which is longer than the header "
                                  "of a cache, and must not be lost .........."
                                  "..................................\n"}) {
    WriteCache(bytes);
    EXPECT_THAT(Read(), StatusIs(StatusCode::kFailedPrecondition,
                                 options_.cache +
                                     ": want a cache of a corpus or no file, "
                                     "got another kind of file"));
    EXPECT_EQ(CacheBytes(), bytes);
  }
  options_.cache = path_;
  EXPECT_THAT(Read(),
              StatusIs(StatusCode::kFailedPrecondition, StartsWith(path_)));
}

TEST_F(CorpusCacheTest, SaysWhenItCannotBeWritten) {
  options_.cache = folder_.path() + "/no/cache";
  EXPECT_THAT(Read(), StatusIs(StatusCode::kFailedPrecondition,
                               "cannot write " + options_.cache +
                                   ": No such file or directory"));
}

}  // namespace
}  // namespace onestep
