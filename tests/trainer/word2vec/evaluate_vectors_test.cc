// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/evaluate_vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/trainer/word2vec/small_vectors.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

// 1 - 6 * (sum of squared differences of ranks) / (n * (n * n - 1)).
TEST(SpearmanTest, IsThatOfRanks) {
  EXPECT_DOUBLE_EQ(Spearman({10, 20, 30, 1000}, {1, 3, 2, 4}), 1 - 6 * 2 / 60.);
  EXPECT_DOUBLE_EQ(Spearman({1, 2, 3}, {3, 2, 1}), -1);
}

// Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
TEST(SpearmanTest, EqualValuesShareTheirRanks) {
  EXPECT_DOUBLE_EQ(Spearman({1, 2, 2, 3}, {1, 2, 3, 4}), std::sqrt(0.9));
}

TEST(SpearmanTest, IsNoNumberWithoutDifferences) {
  EXPECT_TRUE(std::isnan(Spearman({}, {})));
  EXPECT_TRUE(std::isnan(Spearman({1}, {2})));
  EXPECT_TRUE(std::isnan(Spearman({1, 1}, {1, 2})));
  EXPECT_TRUE(std::isnan(Spearman({1, NAN, 2}, {1, 2, 3})));
}

TEST(PearsonTest, IsThatOfValues) {
  EXPECT_DOUBLE_EQ(Pearson({1, 2, 4}, {2, 4, 8}), 1);
  EXPECT_DOUBLE_EQ(Pearson({0, 0, 3}, {0, 3, 0}), -0.5);
}

TEST(UpperCaseTest, KnowsLettersOfAllScripts) {
  ASSERT_OK_AND_ASSIGN(const UpperCase upper, UpperCase::Create());
  EXPECT_EQ(upper("king-1"), "KING-1");
  EXPECT_EQ(upper("na\xc3\xafve"), "NA\xc3\x8fVE");  // i diaeresis
  EXPECT_EQ(upper("\xd0\xbc\xd0\xb8\xd1\x80"),       // Cyrillic mir
            "\xd0\x9c\xd0\x98\xd0\xa0");
  EXPECT_EQ(upper("\xff\xfe"
                  "a"),
            "\xff\xfe"
            "a");  // not UTF-8
  EXPECT_EQ(upper(""), "");
}

class VectorsEvaluatorTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) const {
    const std::string path = folder_.path() + "/test";
    std::ofstream(path) << text;
    return path;
  }
  static absl::StatusOr<VectorsEvaluator> Make(const WordSpace& space) {
    return VectorsEvaluator::Create(space);
  }

  TempFolder folder_;
  // In which b - a is [0, 1]. "King" comes after "king".
  const WordSpace space_{SmallVectors({{"man", {1, 0, 0}},
                                       {"king", {1, 1, 0}},
                                       {"woman", {0, 0, 1}},
                                       {"queen", {0, 1, 1}},
                                       {"King", {-1, 1, 1}},
                                       {"apple", {0, -1, 0}}}),
                         1};
};

TEST_F(VectorsEvaluatorTest, ScoresPairsOfKnownWords) {
  ASSERT_OK_AND_ASSIGN(const VectorsEvaluator evaluator, Make(space_));
  // Cosines 0, 1/2, -1/sqrt(2); twice unknown.
  ASSERT_OK_AND_ASSIGN(const PairScores scores,
                       evaluator.ScorePairs(Write("# a comment\n"
                                                  "man\twoman\t5\n"
                                                  "KING\tQueen\t9.5\r\n"
                                                  "\n"
                                                  "king\tpear\t3\n"
                                                  "pear\tplum\t8\n"
                                                  "apple\tqueen\t6\n")));
  EXPECT_EQ(scores.pairs, 3);
  EXPECT_EQ(scores.unknown, 2);
  EXPECT_DOUBLE_EQ(scores.spearman, 0.5);
  EXPECT_NEAR(scores.pearson, Pearson({0, 0.5, -std::sqrt(0.5)}, {5, 9.5, 6}),
              1e-6);
}

TEST_F(VectorsEvaluatorTest, AWrongPairNamesTheLine) {
  ASSERT_OK_AND_ASSIGN(const VectorsEvaluator evaluator, Make(space_));
  for (const char* line : {"a b 3", "a\tb", "a\tb\tx", "a\tb\t1\t2"}) {
    EXPECT_THAT(evaluator.ScorePairs(Write("# none\n" + std::string(line))),
                StatusIs(StatusCode::kDataLoss,
                         HasSubstr("/test: line 2: want a word, a word and")))
        << line;
  }
  EXPECT_THAT(evaluator.ScorePairs("/nonexistent/pairs"),
              StatusIs(StatusCode::kNotFound, HasSubstr("/nonexistent/pairs")));
}

TEST_F(VectorsEvaluatorTest, ScoresQuestionsBySection) {
  ASSERT_OK_AND_ASSIGN(const VectorsEvaluator evaluator, Make(space_));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<QuestionScores> sections,
      evaluator.ScoreQuestions(Write("\xef\xbb\xbf: family\n"
                                     "man king woman queen\n"
                                     "Man KING Woman Queen\n"
                                     "man king woman apple\n"
                                     "man king woman pear\n"
                                     ": gram1-none\n"
                                     "pear king woman queen\n"
                                     ":gram2-one\n"
                                     "king man queen woman\n")));
  ASSERT_EQ(sections.size(), 3);
  EXPECT_EQ(sections[0].section, "family");
  EXPECT_EQ(sections[0].correct, 2);
  EXPECT_EQ(sections[0].asked, 3);
  EXPECT_EQ(sections[0].unknown, 1);
  EXPECT_FALSE(sections[0].syntactic());
  EXPECT_EQ(sections[1].asked, 0);
  EXPECT_EQ(sections[1].unknown, 1);
  EXPECT_EQ(sections[2].section, "gram2-one");
  EXPECT_TRUE(sections[2].syntactic());
  EXPECT_EQ(sections[2].correct, 1);
}

// The nearest to king - man + woman is "King", which is one of the three.
TEST_F(VectorsEvaluatorTest, AnswersAreNoneOfTheThreeInAnyWriting) {
  const WordSpace space(SmallVectors({{"man", {1, 0, 0}},
                                      {"king", {1, 1, 0}},
                                      {"woman", {0, 0, 1}},
                                      {"queen", {0, 1, 1}},
                                      {"King", {-0.3f, 0.7f, 1}}}),
                        1);
  ASSERT_OK_AND_ASSIGN(const auto nearest,
                       space.Nearest({{{1, 2}, {0}}}, 1, 5));
  ASSERT_EQ(nearest[0][0].word, 4);
  ASSERT_OK_AND_ASSIGN(const VectorsEvaluator evaluator, Make(space));
  ASSERT_OK_AND_ASSIGN(
      const auto sections,
      evaluator.ScoreQuestions(Write(": all\nman king woman queen\n")));
  EXPECT_EQ(sections[0].correct, 1);
}

TEST_F(VectorsEvaluatorTest, AWrongQuestionNamesTheLine) {
  ASSERT_OK_AND_ASSIGN(const VectorsEvaluator evaluator, Make(space_));
  EXPECT_THAT(evaluator.ScoreQuestions(Write(": a\nman king woman\n")),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("/test: line 2: want 4 words, got 'man king "
                                 "woman'")));
  EXPECT_THAT(evaluator.ScoreQuestions(Write("a b c d\n")),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("/test: line 1: want \": section\"")));
}

}  // namespace
}  // namespace onestep
