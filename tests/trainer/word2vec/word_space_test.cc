// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/word_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/status_matchers.h"
#include "tests/trainer/word2vec/small_vectors.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int64_t> WordsOf(const std::vector<Neighbour>& neighbours) {
  std::vector<int64_t> words;
  for (const Neighbour& n : neighbours) words.push_back(n.word);
  return words;
}

TEST(WordSpaceTest, NeighboursComeByCosineWithoutTheWordItself) {
  const WordSpace space(SmallVectors({{"east", {2, 0}},
                                      {"north", {0, 1}},
                                      {"northeast", {3, 3}},
                                      {"west", {-1, 0}}}),
                        /*threads=*/1);
  ASSERT_OK_AND_ASSIGN(const auto nearest, space.Nearest({{{0}, {}}}, 10, 4));
  ASSERT_EQ(WordsOf(nearest[0]), (std::vector<int64_t>{2, 1, 3}));
  EXPECT_NEAR(nearest[0][0].cosine, std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(nearest[0][1].cosine, 0, 1e-6);
  EXPECT_NEAR(nearest[0][2].cosine, -1, 1e-6);
  EXPECT_NEAR(space.Cosine(0, 2), std::sqrt(0.5), 1e-6);
}

TEST(WordSpaceTest, AnAnalogyIsASumOfUnitVectors) {
  const WordSpace space(SmallVectors({{"man", {5, 0, 0}},
                                      {"king", {1, 1, 0}},
                                      {"woman", {0, 0, 3}},
                                      {"queen", {0, 1, 1}},
                                      {"apple", {0, -1, 0}}}),
                        /*threads=*/1);
  ASSERT_OK_AND_ASSIGN(const auto nearest,
                       space.Nearest({{{1, 2}, {0}}}, 1, 5));
  ASSERT_EQ(WordsOf(nearest[0]), (std::vector<int64_t>{3}));
  // (r - 1, r, 1) and (0, r, r), r = 1 / sqrt(2).
  const double r = std::sqrt(0.5);
  EXPECT_NEAR(nearest[0][0].cosine,
              (r * r + r) / std::sqrt((r - 1) * (r - 1) + r * r + 1), 1e-6);
}

TEST(WordSpaceTest, OfEqualNeighboursTheEarlierWordIsFirst) {
  const WordSpace space(
      SmallVectors({{"a", {1, 0}}, {"b", {0, 1}}, {"c", {0, 2}}}), 1);
  ASSERT_OK_AND_ASSIGN(const auto nearest, space.Nearest({{{0}, {}}}, 2, 3));
  EXPECT_EQ(WordsOf(nearest[0]), (std::vector<int64_t>{1, 2}));
}

TEST(WordSpaceTest, AllNeighboursAreAsTheFewBest) {
  std::vector<std::pair<std::string, std::vector<float>>> rows;
  for (int i = 0; i < 100; ++i) {  // cosines with word 0 come five times each
    const auto angle = static_cast<float>(i * 7 % 20);
    rows.push_back(
        {std::to_string(i), {std::cos(0.1f * angle), std::sin(0.1f * angle)}});
  }
  const WordSpace space(SmallVectors(rows), 1);
  ASSERT_OK_AND_ASSIGN(const auto all, space.Nearest({{{0}, {}}}, 1000, 100));
  std::vector<int64_t> words = WordsOf(all[0]);
  ASSERT_EQ(words.size(), 99);
  EXPECT_TRUE(std::is_sorted(
      all[0].begin(), all[0].end(), [](const Neighbour& a, const Neighbour& b) {
        return a.cosine != b.cosine ? a.cosine > b.cosine : a.word < b.word;
      }));
  ASSERT_OK_AND_ASSIGN(const auto few, space.Nearest({{{0}, {}}}, 7, 100));
  words.resize(7);
  EXPECT_EQ(WordsOf(few[0]), words);
}

TEST(WordSpaceTest, OnlyTheFirstWordsAreAsked) {
  const WordSpace space(
      SmallVectors({{"a", {1, 0}}, {"b", {0, 1}}, {"c", {1, 1}}}), 1);
  ASSERT_OK_AND_ASSIGN(const auto nearest, space.Nearest({{{2}, {}}}, 5, 1));
  EXPECT_EQ(WordsOf(nearest[0]), (std::vector<int64_t>{0}));
}

TEST(WordSpaceTest, RowsWithoutADirectionDoNoHarm) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const WordSpace space(
      SmallVectors({{"a", {1, 0}}, {"zero", {0, 0}}, {"nan", {kNan, 1}}}), 1);
  ASSERT_OK_AND_ASSIGN(const auto nearest,
                       space.Nearest({{{0}, {}}, {{2}, {}}}, 5, 3));
  EXPECT_EQ(WordsOf(nearest[0]), (std::vector<int64_t>{1}));
  EXPECT_EQ(space.Cosine(0, 1), 0);
  EXPECT_THAT(nearest[1], IsEmpty());
}

// More directions than a block, against cosines by hand.
TEST(WordSpaceTest, BlocksAndThreadsFindWhatOneByOneFinds) {
  constexpr int64_t kWords = 700, kDim = 7, kTop = 4;
  Random random(3);
  std::vector<std::pair<std::string, std::vector<float>>> rows;
  std::vector<Direction> directions;
  for (int64_t i = 0; i < kWords; ++i) {
    std::vector<float> row(kDim);
    for (float& x : row) x = static_cast<float>(random.Normal());
    rows.emplace_back(std::to_string(i), row);
    directions.push_back({{i}, {}});
  }
  const WordSpace space(SmallVectors(rows), /*threads=*/2);
  ASSERT_OK_AND_ASSIGN(const auto nearest,
                       space.Nearest(directions, kTop, kWords));
  for (int64_t i = 0; i < kWords; ++i) {
    std::vector<std::pair<double, int64_t>> best;
    for (int64_t j = 0; j < kWords; ++j) {
      if (j != i) best.emplace_back(-space.Cosine(i, j), j);
    }
    std::sort(best.begin(), best.end());
    ASSERT_EQ(std::ssize(nearest[i]), kTop);
    for (int64_t k = 0; k < kTop; ++k) {
      EXPECT_EQ(nearest[i][k].word, best[k].second) << i << " " << k;
      // A sum of seven products in fp32.
      EXPECT_NEAR(nearest[i][k].cosine, -best[k].first, 1e-6);
    }
  }
}

TEST(WordSpaceTest, AnUnknownWordIsSaidWithThoseSpeltLikeIt) {
  const WordSpace space(SmallVectors({{"a", {1}},
                                      {"ring", {1}},
                                      {"king", {1}},
                                      {"kings", {1}},
                                      {"sing", {1}}}),
                        1);
  EXPECT_THAT(space.Find("kin"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want words of small, got 'kin'; the nearest "
                                 "are 'king', 'ring', 'kings'")));
  ASSERT_OK_AND_ASSIGN(const int64_t id, space.Find("king"));
  EXPECT_EQ(id, 2);
}

}  // namespace
}  // namespace onestep
