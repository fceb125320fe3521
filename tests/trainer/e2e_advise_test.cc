// SPDX-License-Identifier: Apache-2.0
// `trainer advise` and `trainer sweep` from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/trainer/cli_fixture.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class E2eAdviseTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    setenv("ONESTEP_CACHE", Path("cache").c_str(), /*overwrite=*/1);
  }
  void TearDown() override {
    unsetenv("ONESTEP_CACHE");
    CliTest::TearDown();
  }
};

TEST_F(E2eAdviseTest, AdviceOfTheBatchThatWasGivenIsKeptAndChecked) {
  const CliResult first = Run({"advise", "--model", "64-32-10", "--batch=8",
                               "--threads", "1", "--json", "--check"});
  ASSERT_EQ(first.code, 0) << first.err;
  const json advice = json::parse(first.out);
  EXPECT_EQ(advice["batches"].size(), 1);
  EXPECT_EQ(advice["advised"]["batch"], 8);
  EXPECT_GT(advice["advised"]["measured_us"], 0);
  EXPECT_NE(Exists("cache/costs.json"),
            advice["calibration"]["busy"].get<bool>());

  const CliResult text =
      Run({"advise", "--model", "64-32-10", "--threads", "1"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("trainer --model 64-32-10 --batch "),
                              HasSubstr("memory of a run:"),
                              HasSubstr("   batch  s an epoch"),
                              AnyOf(HasSubstr(Path("cache/costs.json")),
                                    HasSubstr("the machine was busy"))));
}

TEST_F(E2eAdviseTest, ASweepHasEachBatchAndTheReasonOfWhatCannotRun) {
  WriteData("data", 200, 50);
  const CliResult result =
      Run({"sweep", "--data", Path("data"), "--batches", "8,64", "--threads",
           "1", "--input", "dense", "--dispatch", "ops,graph", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json sweep = json::parse(result.out);
  ASSERT_EQ(sweep["cells"].size(), 4);
  EXPECT_GT(sweep["cells"][0]["seconds_per_epoch"], 0);
  EXPECT_EQ(sweep["cells"][2]["batch"], 64);
  EXPECT_THAT(sweep["cells"][1]["refused"].get<std::string>(),
              HasSubstr("dispatch graph on device cpu"));
}

TEST_F(E2eAdviseTest, PeersOfNoFileAreADataError) {
  WriteData("data", 200, 50);
  const CliResult result =
      Run({"sweep", "--data", Path("data"), "--peers", Path("none.json")});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("--peers: cannot read"));
}

TEST_F(E2eAdviseTest, ASignalEndsAllThatPeersStarted) {
  WriteData("data", 200, 50, /*side=*/28);
  Write("peers", "#!/bin/sh\nsleep 600 &\necho $! >pid\nwait\n");
  std::filesystem::permissions(Path("peers"),
                               std::filesystem::perms::owner_all);
  const CliResult result =
      RunUntil("pid", SIGTERM,
               {"sweep", "--data", Path("data"), "--peers", Path("peers")});
  EXPECT_EQ(result.code, 143);
  const std::string left = absl::StrCat("/proc/", std::stoi(Read("pid")));
  for (int i = 0; i < 1000 && ReadFile(left + "/cmdline") != ""; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(ReadFile(left + "/cmdline"), "");
}

}  // namespace
}  // namespace onestep
