// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/word_list.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace onestep {
namespace {

TEST(WordListTest, FindsEachOfManyWordsAtItsPlace) {
  WordList words;
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(words.Add(std::to_string(i)));
  EXPECT_EQ(words.size(), 5000);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(words[i], std::to_string(i));
    EXPECT_EQ(words.Find(std::to_string(i)), i);
  }
  EXPECT_EQ(words.Find("5000"), -1);
}

TEST(WordListTest, AddsAWordOnce) {
  WordList words;
  EXPECT_TRUE(words.Add("a"));
  EXPECT_TRUE(words.Add(""));
  EXPECT_FALSE(words.Add("a"));
  EXPECT_FALSE(words.Add(""));
  EXPECT_EQ(words.size(), 2);
  EXPECT_EQ(words.Find(""), 1);
}

TEST(WordListTest, AnEmptyOneFindsNothing) {
  EXPECT_EQ(WordList().Find("a"), -1);
}

TEST(WordListTest, WordsAreAnyBytes) {
  const std::string odd("\0\xff\t", 3);
  WordList words;
  words.Add(odd);
  words.Add(odd.substr(0, 2));
  const WordList moved = std::move(words);
  EXPECT_EQ(moved.Find(odd), 0);
  EXPECT_EQ(moved[1], odd.substr(0, 2));
}

}  // namespace
}  // namespace onestep
