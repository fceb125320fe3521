// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/trainer/word2vec/corpus_content.h"
#include "trainer/data/random.h"
#include "trainer/word2vec/tokenize.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The definition: one word after the other, in maps.
Content Expected(const std::string& text, int64_t min_count,
                 int64_t max_vocab) {
  std::vector<std::vector<std::string>> lines(1);
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) lines.back().push_back(word);
    word.clear();
  };
  for (const char c : text) {
    const bool separates =
        std::string(" \t\n\v\f\r").find(c) != std::string::npos;
    if (separates) end_word();
    if (!separates) word += c;
    if (c == '\n') lines.emplace_back();
  }
  end_word();

  Content content = {};
  std::map<std::string, std::pair<int64_t, int64_t>> seen;  // count, order
  for (const auto& line : lines) {
    content.read += line.size();
    for (const auto& w : line) {
      const int64_t order = seen.size();
      ++seen.try_emplace(w, 0, order).first->second.first;
    }
  }
  content.distinct = seen.size();
  std::vector<std::pair<std::pair<int64_t, int64_t>, std::string>> sorted;
  for (const auto& [w, count] : seen) {
    if (count.first >= min_count) sorted.emplace_back(count, w);
  }
  std::sort(sorted.rbegin(), sorted.rend());
  if (max_vocab > 0 && max_vocab < static_cast<int64_t>(sorted.size())) {
    sorted.resize(max_vocab);
  }
  std::map<std::string, int32_t> ids;
  for (const auto& [count, w] : sorted) {
    ids[w] = content.words.size();
    content.words.emplace_back(w, count.first);
  }
  for (const auto& line : lines) {
    const size_t before = content.tokens.size();
    for (const auto& w : line) {
      if (ids.contains(w)) content.tokens.push_back(ids[w]);
    }
    if (content.tokens.size() > before) content.tokens.push_back(-1);
  }
  content.bytes = text.size();
  content.lines = lines.size() - (text.empty() || text.back() == '\n');
  return content;
}

class CorpusTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return path_;
  }
  absl::StatusOr<Corpus> Read(const std::string& text, int64_t min_count = 1,
                              int threads = 1) const {
    CorpusOptions options;
    options.min_count = min_count;
    options.threads = threads;
    return ReadCorpus(Write(text), options);
  }
  // The error of reading `text`: it names the file, in one line.
  absl::Status Error(const std::string& text, int64_t min_count = 1) const {
    const absl::Status status = Read(text, min_count).status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(path_ + ": "), Not(HasSubstr("\n"))));
    return status;
  }

  TempFolder folder_;
  const std::string path_ = folder_.path() + "/text";
};

std::vector<int32_t> Tokens(const Corpus& corpus) {
  return {corpus.tokens.begin(), corpus.tokens.end()};
}

TEST_F(CorpusTest, NumbersWordsByCountAndEndsLinesByMinusOne) {
  ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read("a b b\nc b a\n"));
  EXPECT_EQ(WordsOf(corpus), (Counts{{"b", 3}, {"a", 2}, {"c", 1}}));
  EXPECT_THAT(Tokens(corpus), ElementsAre(1, 0, 0, -1, 2, 0, 1, -1));
  EXPECT_EQ(corpus.vocabulary.total(), 6);
  EXPECT_EQ(corpus.counts.bytes, 12);
  EXPECT_EQ(corpus.counts.lines, 2);
  EXPECT_EQ(corpus.counts.tokens, 6);
  EXPECT_EQ(corpus.counts.words, 3);
}

TEST_F(CorpusTest, OfEqualCountsTheLaterSeenComesFirst) {
  ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read("a b c b c a d"));
  EXPECT_EQ(WordsOf(corpus), (Counts{{"c", 2}, {"b", 2}, {"a", 2}, {"d", 1}}));
}

TEST_F(CorpusTest, LinesWithoutWordsAddNothing) {
  ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read("\n\n a\n \t\n\r\na"));
  EXPECT_THAT(Tokens(corpus), ElementsAre(0, -1, 0, -1));
  EXPECT_EQ(corpus.counts.lines, 6);
}

TEST_F(CorpusTest, RareWordsAreLeftOutAndLinesThatHaveNoOthers) {
  ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read("a x a\ny z\na\n", 3));
  EXPECT_EQ(WordsOf(corpus), (Counts{{"a", 3}}));
  EXPECT_THAT(Tokens(corpus), ElementsAre(0, 0, -1, 0, -1));
  EXPECT_EQ(corpus.counts.tokens, 6);
  EXPECT_EQ(corpus.counts.words, 4);
  EXPECT_EQ(corpus.vocabulary.total(), 3);
}

TEST_F(CorpusTest, MaxVocabKeepsTheFirstIds) {
  CorpusOptions options;
  options.min_count = 1;
  options.max_vocab = 2;
  ASSERT_OK_AND_ASSIGN(const Corpus corpus,
                       ReadCorpus(Write("a a a b b c c d"), options));
  EXPECT_EQ(WordsOf(corpus), (Counts{{"a", 3}, {"c", 2}}));
  EXPECT_THAT(Tokens(corpus), ElementsAre(0, 0, 0, 1, 1, -1));
}

TEST_F(CorpusTest, AllButSixBytesBelongToWords) {
  std::string text;
  for (int c = 0; c < 256; ++c) text += static_cast<char>(c);
  ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read(text));
  std::string nul_to_bs, so_to_us, rest;
  for (int c = 0; c < 256; ++c) {
    if (c < '\t') nul_to_bs += static_cast<char>(c);
    if (c > '\r' && c < ' ') so_to_us += static_cast<char>(c);
    if (c > ' ') rest += static_cast<char>(c);
  }
  EXPECT_EQ(WordsOf(corpus),
            (Counts{{rest, 1}, {so_to_us, 1}, {nul_to_bs, 1}}));
}

TEST_F(CorpusTest, WordsThatDifferByNulBytesAreDifferent) {
  const std::string nul(1, '\0');
  ASSERT_OK_AND_ASSIGN(
      const Corpus corpus,
      Read("a a" + nul + " a" + nul + nul + " " + nul + " " + nul + nul));
  EXPECT_EQ(corpus.vocabulary.size(), 5);
}

TEST_F(CorpusTest, NothingIsCutFromALongWordOrLine) {
  const std::string word(3'000'001, 'x');
  std::string text = word;
  for (int i = 0; i < 100'000; ++i) text += " y";
  ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read(text, 1, 3));
  EXPECT_EQ(WordsOf(corpus), (Counts{{"y", 100'000}, {word, 1}}));
  EXPECT_EQ(corpus.tokens.size(), 100'002u);
}

TEST_F(CorpusTest, ReadsATextThatFillsItsLastPage) {
  for (const size_t bytes : {4096, 65536}) {
    std::string text(bytes, 'x');
    text[bytes - 4] = ' ';
    ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read(text));
    EXPECT_EQ(corpus.vocabulary.word(0), "xxx");
  }
}

TEST(TokenizeTest, FindsSeparatorsInEachPlaceBesideAnyByte) {
  for (int c = 0; c < 256; ++c) {
    for (const uint64_t beside : {0x00, 0x08, 0x20, 0x7f, 0x80, 0xff}) {
      for (int bits = 0; bits < 64; bits += 8) {
        const uint64_t bytes =
            (beside * 0x0101010101010101 & ~(uint64_t{0xff} << bits)) |
            static_cast<uint64_t>(c) << bits;
        ASSERT_EQ(Separators(bytes) >> bits & 0xff,
                  IsSeparator(static_cast<char>(c)) ? 0x80u : 0u)
            << c << " beside " << beside;
      }
    }
  }
}

TEST(TokenizeTest, LooksNoFurtherThanTheLimit) {
  const std::string text(40, 'x');
  for (int size = 1; size < 30; ++size) {
    const char* const end = text.data() + size;
    int words = 0;
    Tokenize(
        text.data(), end, end,
        [&](uint64_t head, std::string_view word) {
          ++words;
          EXPECT_EQ(word.size(), size);
          EXPECT_EQ(head, WordHead(word));
        },
        [] {});
    EXPECT_EQ(words, 1);
  }
}

TEST_F(CorpusTest, AgreesWithTheDefinitionOnRandomBytes) {
  Random random(1);
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  // Words of few letters repeat; the separators are frequent or rare.
  const std::vector<std::string> alphabets = {
      all,
      std::string("ab \n"),
      std::string("a\0\n \t\v\f\r", 8),
      std::string("aaaaaaaabbbbbbbbccccccc\n "),
      std::string("\n"),
      std::string("abcdefghijklmnopqrstuvwxyz\x80\xff\x89\xa0\x8d       \n")};
  for (int i = 0; i < 200; ++i) {
    const std::string& alphabet = alphabets[i % alphabets.size()];
    std::string text(random.Below(i % 7 == 0 ? 3000 : 60), 'x');
    for (char& c : text) c = alphabet[random.Below(alphabet.size())];
    CorpusOptions options;
    options.min_count = 1 + random.Below(3);
    options.max_vocab = random.Below(2) * 4;
    options.threads = 1 + random.Below(4);
    const Content want = Expected(text, options.min_count, options.max_vocab);
    const absl::StatusOr<Corpus> got = ReadCorpus(Write(text), options);
    if (want.words.empty()) {
      EXPECT_THAT(got, StatusIs(StatusCode::kDataLoss, HasSubstr("want")));
      continue;
    }
    ASSERT_OK(got);
    ASSERT_EQ(ContentOf(*got), want) << testing::PrintToString(text);
  }
}

// Longer than the pieces in which a thread reads.
std::string LongText(int64_t words, bool lines) {
  Random random(2);
  std::string text;
  for (int64_t i = 0; i < words; ++i) {
    // Squared, so that small numbers are frequent.
    const uint64_t number = random.Below(300) * random.Below(300);
    text += "word" + std::to_string(number * number);
    text += lines && random.Below(20) == 0 ? '\n' : ' ';
  }
  return text;
}

TEST_F(CorpusTest, IsTheSameForAnyNumberOfThreads) {
  for (const bool lines : {true, false}) {
    const std::string text = LongText(700'000, lines);
    ASSERT_GT(text.size(), 8u << 20);
    ASSERT_OK_AND_ASSIGN(const Corpus one, Read(text, 5, 1));
    const Content want = ContentOf(one);
    EXPECT_EQ(want.lines > 1, lines);
    for (const int threads : {2, 5}) {
      ASSERT_OK_AND_ASSIGN(const Corpus more, Read(text, 5, threads));
      EXPECT_TRUE(ContentOf(more) == want) << threads << " threads";
    }
  }
}

TEST_F(CorpusTest, SaysHowMuchIsRead) {
  const std::string text = LongText(400'000, true);
  std::vector<int64_t> seen;
  CorpusOptions options;
  options.progress = [&](int64_t bytes, int64_t of) {
    EXPECT_EQ(of, text.size());
    seen.push_back(bytes);
  };
  ASSERT_OK(ReadCorpus(Write(text), options));
  ASSERT_GE(seen.size(), 2u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), text.size());
}

TEST_F(CorpusTest, RefusesWhatIsNoText) {
  EXPECT_THAT(
      ReadCorpus("/nowhere/text", {}),
      StatusIs(StatusCode::kNotFound,
               "/nowhere/text: cannot read: No such file or directory"));
  EXPECT_THAT(ReadCorpus(folder_.path(), {}),
              StatusIs(StatusCode::kNotFound,
                       folder_.path() + ": want a regular file, got a folder"));
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ReadCorpus(pipe, {}),
              StatusIs(StatusCode::kNotFound, HasSubstr("got a pipe")));
  EXPECT_THAT(ReadCorpus("/dev/null", {}),
              StatusIs(StatusCode::kNotFound, HasSubstr("got a device")));
  EXPECT_THAT(Error(""), StatusIs(StatusCode::kDataLoss, HasSubstr("words")));
  EXPECT_THAT(Error("\n \r\n"),
              StatusIs(StatusCode::kDataLoss, HasSubstr("words")));
}

TEST_F(CorpusTest, SaysHowOftenTheMostFrequentWordOccurs) {
  EXPECT_THAT(Error("a b a c", 5),
              StatusIs(StatusCode::kDataLoss,
                       path_ + ": want a word that occurs 5 times (min-count), "
                               "got 3 words with at most 2"));
}

TEST_F(CorpusTest, AByteOrderMarkAtTheStartIsNoWord) {
  for (const int threads : {1, 3}) {
    ASSERT_OK_AND_ASSIGN(const Corpus corpus, Read("\xef\xbb\xbf"
                                                   "a a \xef\xbb\xbf"
                                                   "b",
                                                   1, threads));
    EXPECT_THAT(WordsOf(corpus),
                ElementsAre(std::pair("a", 2), std::pair("\xef\xbb\xbf"
                                                         "b",
                                                         1)));
  }
  EXPECT_THAT(Error("\xef\xbb\xbf"),
              StatusIs(StatusCode::kDataLoss, HasSubstr("a file without")));
}

TEST_F(CorpusTest, SaysHowToUnpackWhatIsPacked) {
  EXPECT_THAT(
      Error("\x1f\x8b\x08 packed"),
      StatusIs(
          StatusCode::kDataLoss,
          path_ + ": want an unpacked file, got gzip: try gunzip -k " + path_));
  EXPECT_THAT(Error("\xfd"
                    "7zXZ"),
              StatusIs(StatusCode::kDataLoss, HasSubstr("try unxz -k")));
  EXPECT_THAT(Error("\x28\xb5\x2f\xfd"),
              StatusIs(StatusCode::kDataLoss, HasSubstr("got zstd")));
}

}  // namespace
}  // namespace onestep
