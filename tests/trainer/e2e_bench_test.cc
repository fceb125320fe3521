// SPDX-License-Identifier: Apache-2.0
// `trainer bench`, which starts itself, from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "tests/trainer/cli_fixture.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class E2eBenchTest : public CliTest {
 protected:
  CliResult Bench(const std::vector<std::string>& more) {
    std::vector<std::string> args = {"bench",   "--model",     "20-16-4",
                                     "--batch", "8",           "--threads",
                                     "1",       "--processes", "3"};
    args.insert(args.end(), more.begin(), more.end());
    return Run(args);
  }

  // What an earlier run would have printed, each of whose steps took so many
  // times as long as one now.
  void WriteEarlierRun(const std::string& name, double factor) {
    static const std::string measured = Bench({"--json", "--samples=30"}).out;
    json run = json::parse(measured);
    for (auto& way : run.at("rows")[0].at("raw")) {
      for (auto& start : way.at("us")) {
        for (auto& us : start) us = factor * us.get<double>();
      }
    }
    Write(name, run.dump());
  }

  // Whether a process of this machine has these words in its command line.
  static bool IsRunning(const std::string& word, const std::string& another) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string line = ReadFile(entry.path() / "cmdline");
      if (absl::StrContains(line, word) && absl::StrContains(line, another)) {
        return true;
      }
    }
    return false;
  }
};

TEST_F(E2eBenchTest, TheStartsAreOneRun) {
  const CliResult result = Bench(
      {"--batch", "8,5", "--samples", "30", "--processes", "3", "--json"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  const json run = json::parse(result.out);
  EXPECT_EQ(run.at("processes"), 3);
  EXPECT_EQ(run.at("samples"), 30);
  EXPECT_TRUE(run.at("environment").contains("governor"));
  ASSERT_EQ(run.at("rows").size(), 2u);
  const json& row = run.at("rows")[1];
  EXPECT_EQ(row.at("batch"), 5);
  const json& fused = row.at("raw").at("fused");
  EXPECT_EQ(fused.at("us").size(), 3u);
  EXPECT_EQ(fused.at("us")[2].size(), 10u);
  EXPECT_EQ(fused.at("compile_ms").size(), 3u);
  EXPECT_EQ(row.at("fused_verdict"), "no measurable difference");
  EXPECT_EQ(row.at("unfused_verdict"), "slower");
}

TEST_F(E2eBenchTest, TextHasTheProtocolAndBothTables) {
  const CliResult result = Bench({"--samples", "9"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("9 samples of each step in 3 process starts"),
                    HasSubstr("no verdict: want 30 samples in 3"),
                    HasSubstr("\nmachine: governor "),
                    HasSubstr(" first step ms\n      8 unfused  ")));
}

TEST_F(E2eBenchTest, AStartThatFailsEndsItWithItsMessageAndCode) {
  const CliResult result = Bench({"--data", "nowhere"});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(StartsWith("trainer: "), HasSubstr("nowhere"),
                                Not(HasSubstr("trainer: trainer"))));
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1);
}

TEST_F(E2eBenchTest, TheGateFailsWhatBecameTenTimesSlower) {
  WriteEarlierRun("then.json", 0.1);
  const CliResult result = Bench(
      {"--samples", "30", "--compare", "then.json", "--gate", "50%", "--json"});
  EXPECT_EQ(result.code, 7);
  EXPECT_THAT(result.err,
              AllOf(StartsWith("trainer: --gate 50%: want at most 1.5 of the "
                               "time in then.json, got batch 8 "),
                    HasSubstr("fused")));
  const json comparison = json::parse(result.out).at("compare");
  EXPECT_EQ(comparison.at("passed"), false);
  EXPECT_EQ(comparison.at("rows")[2].at("way"), "fused");
  EXPECT_EQ(comparison.at("rows")[2].at("verdict"), "slower");
}

TEST_F(E2eBenchTest, TheGatePassesWhatBecameTenTimesFaster) {
  WriteEarlierRun("then.json", 10);
  const CliResult result =
      Bench({"--samples", "30", "--compare=then.json", "--gate=50%"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\ntime now / time in then.json\n"),
                                HasSubstr(" faster\n")));
}

TEST_F(E2eBenchTest, ASignalForOneProcessEndsTheStartsToo) {
  WriteData("data", 200, 10);
  const std::string data = Path("data");
  const int pid =
      Start({"bench", "--model", "64-16-10", "--batch", "8", "--threads", "1",
             "--samples", "1000000", "--data", data},
            ".out", ".err");
  for (int i = 0; i < 1000 && !IsRunning(data, "--processes=1"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(IsRunning(data, "--processes=1"));
  kill(pid, SIGTERM);
  EXPECT_EQ(Wait(pid), 143);
  EXPECT_FALSE(IsRunning(data, "--processes=1"));
  EXPECT_EQ(Read(".err"), "trainer: stopped\n");
}

}  // namespace
}  // namespace onestep
