// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/vocabulary.h"

#include <gtest/gtest.h>

#include <string>

#include "trainer/word2vec/word_counter.h"

namespace onestep {
namespace {

TEST(VocabularyTest, FindsEachWordAndNoOther) {
  Vocabulary vocabulary;
  for (int i = 0; i < 5000; ++i) {
    vocabulary.Add("word" + std::to_string(i) + "é", 5000 - i);
  }
  vocabulary.Add("", 1);
  vocabulary.BuildIndex();
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    ASSERT_EQ(vocabulary.Find(vocabulary.word(id)), id);
  }
  EXPECT_EQ(vocabulary.word(17), "word17é");
  EXPECT_EQ(vocabulary.count(17), 4983);
  for (const char* word : {"word5000é", "word17", "w", "word17é "}) {
    EXPECT_EQ(vocabulary.Find(word), -1) << word;
  }
}

TEST(VocabularyTest, FindsNothingInNothing) {
  Vocabulary vocabulary;
  vocabulary.BuildIndex();
  EXPECT_EQ(vocabulary.size(), 0);
  EXPECT_EQ(vocabulary.Find("word"), -1);
}

int32_t Add(const std::string& word, WordCounter* counter) {
  return counter->Add(WordHead(word), word);
}

TEST(WordCounterTest, NumbersWordsAsTheyComeAndCountsThem) {
  WordCounter counter;
  std::string buffer;
  // Many more than the table begins with, equal in their first 8 bytes.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_EQ(Add("inflection" + std::to_string(i), &counter), i);
    }
  }
  ASSERT_EQ(counter.size(), 20'000);
  for (int i = 0; i < counter.size(); ++i) {
    ASSERT_EQ(counter.count(i), 2);
    ASSERT_EQ(counter.Word(i, &buffer), "inflection" + std::to_string(i));
  }
}

TEST(WordCounterTest, MergesCountsAndSaysTheNewNumbers) {
  WordCounter a, b;
  Add("both", &a);
  Add("a", &a);
  Add("b-alone-and-long", &b);
  Add("both", &b);
  Add("both", &b);
  EXPECT_EQ(a.Merge(b), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(a.count(0), 3);
  std::string buffer;
  EXPECT_EQ(a.Word(2, &buffer), "b-alone-and-long");
  EXPECT_EQ(a.count(2), 1);
}

}  // namespace
}  // namespace onestep
