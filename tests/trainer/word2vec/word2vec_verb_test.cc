// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/trainer/cli_fixture.h"
#include "trainer/word2vec/synthetic_corpus.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class Word2vecVerbTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    ASSERT_TRUE(WriteSyntheticCorpus(Path("text"), 30'000, 1).ok());
  }
  CliResult Train(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"word2vec", "text", "--size", "16"});
    return Run(flags);
  }
};

TEST_F(Word2vecVerbTest, TrainsAndSavesVectorsThatTheOtherVerbsRead) {
  const CliResult result = Train({"--epochs", "3", "--out", "o"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(
          HasSubstr("read 30"), HasSubstr("kept "),
          HasSubstr("memory: tables "),
          HasSubstr(" left out by --sample, 918 not in the vocabulary; loss "),
          HasSubstr("vectors: o/vectors.bin")));
  EXPECT_THAT(Read("o/graph.txt"), HasSubstr("sgns_window"));
  EXPECT_EQ(json::parse(Read("o/config.json"))["size"], 16);
  const CliResult nearest = Run({"nearest", "o", "w0_0", "--json"});
  EXPECT_EQ(nearest.code, 0) << nearest.err;
  // "word count" of the most frequent word comes first.
  const std::string vocabulary = Read("o/vectors.vocab");
  EXPECT_THAT(vocabulary.substr(0, vocabulary.find('\n')), HasSubstr(" "));
  EXPECT_EQ(Train({"--out", "o"}).code, 6);
  Write("o/vectors.txt.tmp.9", "a draft");
  EXPECT_EQ(Train({"--out", "o", "--force", "--format", "text"}).code, 0);
  EXPECT_FALSE(Exists("o/vectors.bin"));
  EXPECT_FALSE(Exists("o/vectors.txt.tmp.9"));
  EXPECT_EQ(Run({"nearest", "o", "w0_0"}).code, 0);
}

TEST_F(Word2vecVerbTest, NoVocabularyIsLeftBesideARunThatDiverged) {
  ASSERT_EQ(Train({"--out", "o"}).code, 0);
  EXPECT_EQ(Train({"--out", "o", "--force", "--lr", "3e38"}).code, 4);
  EXPECT_TRUE(Exists("o/config.json"));
  EXPECT_FALSE(Exists("o/vectors.bin"));
  EXPECT_FALSE(Exists("o/vectors.vocab"));
}

TEST_F(Word2vecVerbTest, ARefusedTextLeavesNoFolder) {
  EXPECT_EQ(Train({"--min-count", "100000", "--out", "o"}).code, 3);
  EXPECT_FALSE(Exists("o"));
}

TEST_F(Word2vecVerbTest, WordsAreThoseOfTheTextAndTheirPartsAddUp) {
  const CliResult result = Train({"--epochs", "2", "--max-vocab", "50",
                                  "--threads", "1", "--json", "--out", "o"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json run = json::parse(result.out);
  const auto check = [&](const json& part, int64_t epochs) {
    ASSERT_TRUE(part["words"].is_number_integer());
    const int64_t words = part["words"];
    EXPECT_EQ(words, epochs * run["counts"]["words"].get<int64_t>());
    EXPECT_EQ(part["words_not_in_vocabulary"],
              words - epochs * run["counts"]["words_kept"].get<int64_t>());
    EXPECT_GT(part["words_not_in_vocabulary"], 0);
    EXPECT_EQ(part["words_used"].get<int64_t>() +
                  part["words_left_out"].get<int64_t>() +
                  part["words_not_in_vocabulary"].get<int64_t>(),
              words);
    EXPECT_DOUBLE_EQ(part["words_per_s"], static_cast<double>(words) /
                                              part["seconds"].get<double>());
  };
  check(run, 2);
  check(run["epochs"][1], 1);
  const std::string log = Read("o/log.jsonl");
  check(json::parse(log.substr(0, log.find('\n'))), 1);
}

TEST_F(Word2vecVerbTest, WithoutAPairThereIsANoticeAndNoLoss) {
  Write("lonely", "hello\n");
  const CliResult text = Run({"word2vec", "lonely", "--min-count", "1"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.err, HasSubstr("no word had another near it"));
  EXPECT_THAT(text.out, HasSubstr("; loss - of 0 pairs"));
  const CliResult result =
      Run({"word2vec", "lonely", "--min-count", "1", "--json"});
  EXPECT_EQ(json::parse(result.out)["loss"], nullptr);
}

TEST_F(Word2vecVerbTest, SaysWhatItDidAsJson) {
  const CliResult result =
      Train({"--epochs", "2", "--threads", "2", "--json", "--cbow", "1"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json run = json::parse(result.out);
  ASSERT_EQ(run["epochs"].size(), 2u);
  EXPECT_LT(run["epochs"][1]["loss"], run["epochs"][0]["loss"]);
  EXPECT_EQ(run["words"], 2 * run["counts"]["words"].get<int64_t>());
  EXPECT_EQ(run["threads"], 2);
  EXPECT_GT(run["memory"]["threads_rows"], 0);
  EXPECT_EQ(run["memory"]["deterministic"], 0);
}

TEST_F(Word2vecVerbTest, DeterministicFilesAreAlikeForAnyThreads) {
  for (const char* threads : {"1", "2"}) {
    const CliResult result =
        Train({"--deterministic", "--threads", threads, "--out", threads});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("and for --deterministic "));
  }
  EXPECT_EQ(Read("1/vectors.bin"), Read("2/vectors.bin"));
}

TEST_F(Word2vecVerbTest, EncodesTheTextOnceWithACache) {
  const CliResult first = Train({"--cache", "a/c", "--out", "a"});
  ASSERT_EQ(first.code, 0) << first.err;
  const CliResult second =
      Train({"--cache", "a/c", "--threads", "1", "--out", "b"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("from the cache"));
}

// Of a text with planted similarities: 0.95 as a rule, 0.90 where the rate is
// too low to learn them.
TEST_F(Word2vecVerbTest, FindsThePlantedSimilarities) {
  constexpr int64_t kTokens = 300'000;
  ASSERT_TRUE(WriteSyntheticCorpus(Path("planted"), kTokens, 1).ok());
  Write("pairs.tsv", SyntheticPairs(kTokens, 1));
  const auto spearman = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"word2vec", "planted", "--out", "o", "--force"});
    const CliResult trained = Run(flags);
    EXPECT_EQ(trained.code, 0) << trained.err;
    const CliResult scored =
        Run({"word2vec-eval", "o", "--pairs", "pairs.tsv", "--json"});
    EXPECT_EQ(scored.code, 0) << scored.err;
    return json::parse(scored.out)["pairs"][0]["spearman"].get<double>();
  };
  EXPECT_GT(spearman({"--threads", "1"}), 0.93);
  EXPECT_GT(spearman({"--threads", "1", "--negatives", "exact"}), 0.93);
  EXPECT_GT(spearman({"--threads", "2"}), 0.92);
  EXPECT_LT(spearman({"--threads", "1", "--lr", "0.005"}), 0.92);
}

TEST_F(Word2vecVerbTest, TakesAPathThatIsNoUtf8) {
  const std::string name = "caf\xe9";
  ASSERT_TRUE(WriteSyntheticCorpus(Path(name), 5'000, 1).ok());
  const CliResult result = Run({"word2vec", name, "--json", "--out", "o"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(json::accept(result.out));
}

TEST_F(Word2vecVerbTest, AnInterruptSavesTheVectors) {
  const CliResult result = RunUntil(
      "o/log.jsonl", SIGINT,
      {"word2vec", "text", "--size", "16", "--epochs", "100000", "--out", "o"});
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.err, HasSubstr("; the vectors are in o/vectors.bin"));
  EXPECT_THAT(result.out, testing::Not(HasSubstr("\n0 words of ")));
  EXPECT_EQ(Run({"nearest", "o", "w0_0"}).code, 0);
}

TEST_F(Word2vecVerbTest, ErrorsNameWhatWasWanted) {
  const struct {
    std::vector<std::string> flags;
    int code;
    const char* message;
  } kCases[] = {
      {{"word2vec"}, 2, "word2vec: want one CORPUS, got none"},
      {{"word2vec", "text", "other"}, 2, "want one CORPUS, got 'other'"},
      {{"word2vec", "none"}, 3, "none"},
      {{"word2vec", "text", "--min-count", "100000"}, 3, "text"},
      {{"word2vec", "text", "--negatives", "some"},
       2,
       "want shared, exact or group:N, got 'some'"},
      {{"word2vec", "text", "--hs", "--negative", "5"},
       2,
       "--negative: want no --hs with it"},
      {{"word2vec", "text", "--cbow", "1", "--negatives", "exact"},
       2,
       "--negatives: want --cbow 0 with it"},
      {{"word2vec", "text", "--cbow-gradient", "exact"},
       2,
       "--cbow-gradient: want --cbow 1 with it"},
      {{"word2vec", "text", "--lr", "1e-5"}, 2, "--min-lr: want at most --lr"},
      {{"word2vec", "text", "--threads", "1", "--hot-rows", "9"},
       2,
       "--hot-rows: want --threads above 1"},
      {{"word2vec", "text", "--format", "text"},
       2,
       "--format: want --out DIR with it"},
      {{"word2vec", "text", "--size", "10", "--lr", "3e38", "--out", "o"},
       4,
       "not finite in epoch 1 at lr "},
  };
  for (const auto& test : kCases) {
    const CliResult result = Run(test.flags);
    EXPECT_EQ(result.code, test.code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(test.message));
  }
  EXPECT_FALSE(Exists("o/vectors.bin"));
}

}  // namespace
}  // namespace onestep
