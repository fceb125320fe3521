// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/synthetic_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/word2vec/corpus.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::StartsWith;

constexpr int64_t kTokens = 120'000;

std::string TextOf(uint64_t seed) {
  TempFolder folder;
  const std::string path = folder.path() + "/corpus.txt";
  EXPECT_OK(WriteSyntheticCorpus(path, kTokens, seed));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(SyntheticCorpusTest, IsOfItsSeed) {
  EXPECT_TRUE(TextOf(1) == TextOf(1));
  EXPECT_FALSE(TextOf(1) == TextOf(2));
  EXPECT_TRUE(SyntheticPairs(kTokens, 1) == SyntheticPairs(kTokens, 1));
  EXPECT_FALSE(SyntheticQuestions(kTokens, 1) ==
               SyntheticQuestions(kTokens, 2));
}

TEST(SyntheticCorpusTest, HasTheTokensAskedForInLinesOfTwenty) {
  std::istringstream text(TextOf(1));
  int64_t tokens = 0;
  for (std::string line; std::getline(text, line);) {
    EXPECT_LT(tokens, kTokens);
    std::istringstream words(line);
    int64_t in_line = 0;
    for (std::string word; words >> word;) ++in_line;
    EXPECT_TRUE(in_line == 20 || in_line == 21) << line;
    tokens += in_line;
  }
  EXPECT_GE(tokens, kTokens);
}

TEST(SyntheticCorpusTest, HasTheWordsOfPairsAndQuestions) {
  TempFolder folder;
  const std::string path = folder.path() + "/corpus.txt";
  ASSERT_OK(WriteSyntheticCorpus(path, kTokens, 1));
  ASSERT_OK_AND_ASSIGN(Corpus corpus, ReadCorpus(path, {}));
  corpus.vocabulary.BuildIndex();
  const auto in_text = [&](const std::string& word) {
    return corpus.vocabulary.Find(word) >= 0;
  };

  std::istringstream pairs(SyntheticPairs(kTokens, 1));
  std::map<std::string, int> values;
  for (std::string line; std::getline(pairs, line);) {
    if (line[0] == '#') continue;
    std::istringstream fields(line);
    std::string a, b, value;
    ASSERT_TRUE(std::getline(fields, a, '\t') &&
                std::getline(fields, b, '\t') && std::getline(fields, value));
    EXPECT_TRUE(in_text(a) && in_text(b) && a != b) << line;
    ++values[value];
  }
  EXPECT_EQ(values, (std::map<std::string, int>{
                        {"1", 600}, {"2", 600}, {"3", 600}, {"4", 600}}));

  std::istringstream questions(SyntheticQuestions(kTokens, 1));
  std::string section;
  std::getline(questions, section);
  EXPECT_THAT(section, StartsWith(": gram"));
  int lines = 0;
  for (std::string a, b, c, d; questions >> a >> b >> c >> d; ++lines) {
    EXPECT_TRUE(in_text(a) && in_text(b) && in_text(c) && in_text(d));
    EXPECT_EQ((std::set<std::string>{a, b, c, d}).size(), 4u);
  }
  EXPECT_EQ(lines, 2000);
}

TEST(SyntheticCorpusTest, SaysWhereItCannotBeWritten) {
  EXPECT_THAT(WriteSyntheticCorpus("/nowhere/corpus.txt", 100, 1),
              StatusIs(StatusCode::kFailedPrecondition,
                       StartsWith("cannot write /nowhere/corpus.txt: ")));
}

}  // namespace
}  // namespace onestep
