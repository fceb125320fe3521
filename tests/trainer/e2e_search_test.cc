// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/trainer/cli_fixture.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class SearchCommandTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    WriteData("d", 300, 50);
  }
  CliResult Search(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"search", "--data", "d", "--epochs", "4",
                                 "--threads", "2", "--input", "dense"});
    return Run(flags);
  }
};

TEST_F(SearchCommandTest, FindsAndSavesTheBest) {
  const CliResult result =
      Search({"--lr", "0.001,0.1", "--hidden", "none,16", "--out", "o"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("4 trials, up to 32 side by side, 4 epochs each"),
                    HasSubstr("\nbest: trial "),
                    HasSubstr("the best alone: trainer train --data d")));
  EXPECT_THAT(result.err, HasSubstr("wave 1/1, epoch 4/4: 4 trials"));
  const CliResult eval = Run({"eval", "o/best", "--data", "d"});
  EXPECT_EQ(eval.code, 0) << eval.err;
  for (const char* name : {"o/search.json", "o/trials.csv", "o/search.html"}) {
    EXPECT_TRUE(Exists(name)) << name;
  }
  EXPECT_EQ(Search({"--out", "o"}).code, 6);
}

TEST_F(SearchCommandTest, NoBestIsLeftOfATrialThatDivergesLater) {
  const CliResult result = Search({"--hidden", "none", "--loss", "mse", "--lr",
                                   "8", "--warmup", "12", "--out", "o"});
  EXPECT_EQ(result.code, 4) << result.out << result.err;
  const json search = json::parse(Read("o/search.json"));
  EXPECT_TRUE(search["best"].is_null());
  EXPECT_FALSE(search["trials"][0]["epochs"].empty());  // of a finite loss
  EXPECT_FALSE(Exists("o/best"));
}

TEST_F(SearchCommandTest, MoreWeightsThanMemoryAreRefusedAtOnce) {
  const CliResult result = Search(
      {"--hidden", "16000-16000", "--seeds", "100000", "--parallel", "100000"});
  EXPECT_EQ(result.code, 5);
  EXPECT_THAT(result.err, HasSubstr("--parallel 100000: the weights want "));
}

TEST_F(SearchCommandTest, OfAGridTheFirstTrialsAreTaken) {
  const CliResult result = Search(
      {"--sample", "grid", "--lr", "0.1,0.2,0.3", "--trials", "2", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json trials = json::parse(result.out)["trials"];
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[1]["lr"], 0.2);
  EXPECT_THAT(trials[1]["alone"].get<std::string>(),
              AllOf(HasSubstr("trainer train --data d"), HasSubstr("--lr 0.2"),
                    HasSubstr("--input dense")));
}

TEST_F(SearchCommandTest, ModelsHaveAsManyClassesAsTheLabels) {
  WriteData("few", 4, 3);  // labels 0 to 3
  const CliResult result = Run({"search", "--data", "few", "--epochs", "1",
                                "--validation", "0.25", "--hidden", "5"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("-5-4, batch 32, sgd"));
}

TEST_F(SearchCommandTest, TheBestAloneIsTheBestBitByBit) {
  const CliResult result =
      Search({"--lr", "0.01,0.1,1", "--seeds", "2", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json search = json::parse(result.out);
  const std::string line = search["best_alone"];
  std::vector<std::string> words;
  for (size_t begin = sizeof("trainer"), end; begin < line.size();
       begin = end + 1) {
    end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
  }
  words.push_back("--json");
  const CliResult alone = Run(words);
  ASSERT_EQ(alone.code, 0) << alone.err;
  const json train = json::parse(alone.out);
  const json& best = search["trials"][search["best"].get<size_t>()];
  ASSERT_EQ(train["epochs"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    for (const char* key : {"loss", "train_accuracy", "validation_loss"}) {
      EXPECT_EQ(train["epochs"][i][key], best["epochs"][i][key]) << i << key;
    }
  }
  EXPECT_EQ(train["test_accuracy"], search["test_accuracy"]);
}

TEST_F(SearchCommandTest, AllDivergedIsATableWithoutABestAndExit4) {
  const CliResult result = Search({"--lr", "1e30,1e32"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("diverged at step "),
                    HasSubstr("no best: no trial that did not diverge")));
  EXPECT_THAT(result.err, HasSubstr("diverged: no finite loss in any of 2"));
}

TEST_F(SearchCommandTest, AnInterruptedSearchKeepsWhatItHas) {
  const CliResult stopped =
      RunUntil("o/search.json", SIGINT,
               {"search", "--data", "d", "--epochs", "100000", "--lr",
                "0.01,0.1", "--out", "o"});
  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.err, HasSubstr("interrupted by SIGINT after 0 of 2 "
                                     "trials; --resume goes on"));
  EXPECT_THAT(stopped.out, AllOf(HasSubstr("broken off after epoch"),
                                 HasSubstr("best: trial ")));
  EXPECT_TRUE(Exists("o/best/model.safetensors"));
  EXPECT_EQ(json::parse(Read("o/search.json"))["ended"], "interrupted");
}

TEST_F(SearchCommandTest, DrawsOnATerminalWithMoreTrialsThanItShows) {
  int ours = -1, terminal = -1;
  if (openpty(&ours, &terminal, nullptr, nullptr, nullptr) != 0) {
    GTEST_SKIP() << "no pseudo-terminal";
  }
  const int pid = Start({"search", "--data", "d", "--epochs", "3", "--seeds",
                         "20", "--lr", "1e30,0.1", "--parallel", "40"},
                        ".out", ttyname(terminal));
  std::string drawn;
  std::thread reader([ours, &drawn] {
    char part[1024];
    for (ssize_t n; (n = read(ours, part, sizeof(part))) > 0;) {
      drawn.append(part, n);
    }
  });
  const int code = Wait(pid);
  close(terminal);  // the reader's end of file
  reader.join();
  close(ours);
  EXPECT_EQ(code, 0) << drawn;
  EXPECT_THAT(drawn, HasSubstr("wave 1/1  epoch "));
  EXPECT_THAT(Read(".out"), HasSubstr("40 trials in "));
}

TEST_F(SearchCommandTest, AfterATimeLimitResumeTrainsTheRest) {
  const std::vector<std::string> flags = {"--lr", "log:1e-3..1",  "--trials",
                                          "6",    "--early-stop", "asha"};
  const auto with = [&flags](std::vector<std::string> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return more;
  };
  EXPECT_EQ(Search(with({"--out", "whole"})).code, 0);
  // No epoch is as short: nothing was trained.
  const CliResult none = Search(with({"--out", "o", "--time-limit", "1e-9"}));
  EXPECT_EQ(none.code, 5);
  EXPECT_THAT(none.out, HasSubstr("ended early: time limit"));
  EXPECT_EQ(Search(with({"--out", "o", "--resume"})).code, 0);
  const json whole = json::parse(Read("whole/search.json"));
  const json resumed = json::parse(Read("o/search.json"));
  EXPECT_EQ(whole["trials"], resumed["trials"]);
  const CliResult again = Search(with({"--out", "o", "--resume"}));
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, HasSubstr("6 of them ended by an earlier run"));
  EXPECT_EQ(Search({"--lr", "0.5", "--out", "o", "--resume"}).code, 2);
}

TEST_F(SearchCommandTest, ResumeRemembersHowTrialsWereRun) {
  const std::vector<std::string> words = {
      "search", "--data", "d", "--epochs", "2", "--out", "o", "--seeds", "2"};
  EXPECT_EQ(Run(words).code, 0);
  const json before = json::parse(Read("o/search.json"));
  const json best = json::parse(Read("o/best/config.json"));
  EXPECT_THAT(best["input"], testing::AnyOf("dense", "sparse"));
  std::vector<std::string> again = words;
  again.push_back("--resume");
  const CliResult result = Run(again);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" --input "));
  const json after = json::parse(Read("o/search.json"));
  EXPECT_EQ(after["groups"], before["groups"]);
  EXPECT_EQ(after["waves"], before["waves"]);
  EXPECT_GE(after["seconds"], before["seconds"]);
  EXPECT_EQ(json::parse(Read("o/best/config.json")), best);
  WriteData("d", 200, 50);
  const CliResult other = Run(again);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("--resume: want rows: train "));
}

}  // namespace
}  // namespace onestep
