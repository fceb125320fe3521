// SPDX-License-Identifier: Apache-2.0
// The verbs nearest, analogy and word2vec-eval, from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "nlohmann/json.hpp"
#include "tests/trainer/cli_fixture.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;

class VectorsVerbsTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    Write("v.txt",
          "5 3\nman 1 0 0\nking 1 1 0\nwoman 0 0 1\nqueen 0 1 1\n"
          "apple 0 -1 0\n");
  }
};

TEST_F(VectorsVerbsTest, NearestShowsTheWordsLikeEach) {
  const CliResult result =
      Run({"nearest", "v.txt", "king", "woman", "--top", "2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "king\n   0.7071  man\n   0.5000  queen\n\n"
            "woman\n   0.7071  queen\n   0.0000  man\n");
}

TEST_F(VectorsVerbsTest, NearestAsJson) {
  const CliResult result = Run({"nearest", "v.txt", "queen", "--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  const json object = json::parse(result.out);
  EXPECT_EQ(object["model_file"], "v.txt");
  const json& nearest = object["words"][0]["nearest"];
  EXPECT_EQ(object["words"][0]["word"], "queen");
  EXPECT_EQ(nearest.size(), 4);  // all the others
  EXPECT_EQ(nearest[0]["word"], "woman");
  EXPECT_NEAR(nearest[0]["cosine"], 0.70710678, 1e-6);
}

TEST_F(VectorsVerbsTest, WordsBehindTheSeparatorMayBeginWithADash) {
  Write("dash", "--top 1 1\n-- 1 1\n-king 0 1\n");
  const CliResult result =
      Run({"nearest", "dash", "--top", "1", "--", "-king", "--top", "--"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "-king\n   0.7071  --top\n\n--top\n   1.0000  --\n\n"
            "--\n   1.0000  --top\n");
}

TEST_F(VectorsVerbsTest, AnalogyAnswers) {
  const CliResult text =
      Run({"analogy", "v.txt", "man", "king", "woman", "--top", "1"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, "man is to king as woman is to\n   0.9586  queen\n");
  const CliResult result =
      Run({"analogy", "v.txt", "man", "king", "woman", "--json"});
  EXPECT_EQ(json::parse(result.out)["nearest"][0]["word"], "queen");
}

TEST_F(VectorsVerbsTest, EvalScoresPairsAndQuestions) {
  Write("pairs",
        "man\tking\t8\nman\twoman\t5\nqueen\tapple\t2\nman\tpear\t1\n");
  Write("questions", ": family\nman king woman queen\n: gram\na b c d\n");
  const CliResult text = Run({"word2vec-eval", "v.txt", "--pairs", "pairs",
                              "--questions", "questions"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out,
            "pairs  spearman  pearson  known  unknown\n"
            "pairs    1.0000   1.0000      3        1\n"
            "\n"
            "questions  accuracy  correct  known  unknown\n"
            "family      100.00%        1      1        0\n"
            "gram              -        0      0        1\n"
            "semantic    100.00%        1      1        0\n"
            "syntactic         -        0      0        1\n"
            "total       100.00%        1      1        1\n");
  const CliResult result = Run({"word2vec-eval", "v.txt", "--json", "--pairs",
                                "pairs", "--questions", "questions"});
  const json object = json::parse(result.out);
  EXPECT_EQ(object["pairs"][0]["spearman"], 1.0);
  EXPECT_EQ(object["pairs"][0]["unknown"], 1);
  EXPECT_EQ(object["questions"]["totals"][2]["accuracy"], 1.0);
  EXPECT_EQ(object["questions"]["sections"][1]["accuracy"], nullptr);
}

TEST_F(VectorsVerbsTest, RepeatedWordsAreNoticed) {
  Write("twice", "3 1\na 1\na 2\nb 3\n");
  const CliResult result = Run({"nearest", "twice", "a"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err,
            "trainer: twice: 1 rows are left out, as their word has one before "
            "them\n");
}

TEST_F(VectorsVerbsTest, WhatIsMissingIsSaid) {
  const auto refused = [this](std::vector<std::string> args, int code,
                              const std::string& message) {
    const CliResult result = Run(args);
    EXPECT_EQ(result.code, code) << message;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_THAT(result.err, EndsWith("\n"));
  };
  refused({"nearest"}, 2, "nearest: want a MODEL file, got none");
  refused({"nearest", "v.txt"}, 2,
          "nearest: want MODEL and WORDs, got no word");
  refused({"nearest", "v.txt", "--"}, 2,
          "nearest: want MODEL and WORDs, got no word");
  refused({"nearest", "v.txt", "-king"}, 2,
          "unknown flag '-king' of nearest; the nearest is --top; words go "
          "behind --");
  refused({"info", "--", "-x"}, 2, "want flags after info, got '-x'");
  refused({"nearest", "v.txt", "kong"}, 2,
          "want words of v.txt, got 'kong'; the nearest are 'king', ");
  refused({"nearest", "none", "king"}, 3, "none: cannot read: ");
  refused({"analogy", "v.txt", "a"}, 2,
          "analogy: want MODEL and three words, got 1 words");
  refused({"word2vec-eval", "v.txt"}, 2,
          "word2vec-eval: want --pairs or --questions, got none");
  refused({"word2vec-eval", "v.txt", "king", "--pairs", "p"}, 2,
          "word2vec-eval: want one MODEL, got 'king' too");
  refused({"word2vec-eval", "v.txt", "--pairs", "none"}, 3, "none: cannot");
}

}  // namespace
}  // namespace onestep
