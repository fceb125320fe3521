// SPDX-License-Identifier: Apache-2.0
#include "trainer/autotune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "runtime/cpu/cpu_info.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/data/random_rows.h"
#include "trainer/machine_info.h"
#include "trainer/version.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AutotuneTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONESTEP_CACHE", folder_.path().c_str(), 1);
    config_.model.widths = {20, 16, 4};
    config_.batch = 8;
    config_.compile.threads = DefaultThreads();
  }
  void TearDown() override { unsetenv("ONESTEP_CACHE"); }

  // On a machine where nothing else runs.
  absl::StatusOr<AutoChoice> Settle(Config& config) const {
    return SettleAuto(config, data_, [] { return CoreWaits(); });
  }

  std::string File() const { return folder_.path() + "/auto.json"; }

  TempFolder folder_;
  Config config_;
  Dataset data_ = RandomRows(100, 20, 4, 1);  // a fifth is not 0
};

TEST_F(AutotuneTest, TimesAllWaysAndTakesTheFastest) {
  Config config = config_;
  ASSERT_OK_AND_ASSIGN(const AutoChoice choice, Settle(config));
  EXPECT_FALSE(choice.cached);
  EXPECT_NEAR(choice.density, 0.2, 0.05);
  ASSERT_GE(choice.candidates.size(), 4u);  // ops, single by dense, sparse
  for (size_t i = 1; i < choice.candidates.size(); ++i) {
    EXPECT_LE(choice.candidates[i - 1].us, choice.candidates[i].us);
  }
  EXPECT_EQ(config.compile.dispatch, choice.candidates[0].dispatch);
  EXPECT_EQ(config.compile.threads, choice.candidates[0].threads);
  EXPECT_EQ(config.input, choice.candidates[0].input);
  EXPECT_EQ(config.compile.sparse.nonzeros > 0,
            config.input == InputMode::kSparse);
  EXPECT_THAT(AutoText(choice), HasSubstr(FlagsOf(choice.candidates[0])));
}

TEST_F(AutotuneTest, ARepeatedRunChoosesTheSameWithoutTiming) {
  Config first = config_, second = config_, other = config_;
  ASSERT_OK_AND_ASSIGN(const AutoChoice timed, Settle(first));
  ASSERT_OK_AND_ASSIGN(const AutoChoice kept, Settle(second));
  EXPECT_TRUE(kept.cached);
  EXPECT_EQ(FlagsOf(kept.candidates[0]), FlagsOf(timed.candidates[0]));
  EXPECT_EQ(kept.candidates.size(), timed.candidates.size());
  other.batch = 9;  // another graph
  ASSERT_OK_AND_ASSIGN(const AutoChoice again, Settle(other));
  EXPECT_FALSE(again.cached);
}

TEST_F(AutotuneTest, AnotherBuildOrWayOfWaitingChoosesAnew) {
  Config config = config_;
  ASSERT_OK(Settle(config));
  std::ifstream file(File());
  const auto kept = nlohmann::ordered_json::parse(file);
  const std::string key = kept.begin().key();
  EXPECT_THAT(key, HasSubstr(BuildAndCpu().dump()));
  EXPECT_THAT(key, HasSubstr("\"build\":\"" + BuildName() + '"'));
  EXPECT_NE(BuildName(), "");

  const char* const spins = std::getenv("GOMP_SPINCOUNT");
  const std::string before = spins == nullptr ? "" : spins;
  setenv("GOMP_SPINCOUNT", (before + "1").c_str(), /*overwrite=*/1);
  config = config_;
  ASSERT_OK_AND_ASSIGN(const AutoChoice again, Settle(config));
  EXPECT_FALSE(again.cached);
  before.empty() ? unsetenv("GOMP_SPINCOUNT")
                 : setenv("GOMP_SPINCOUNT", before.c_str(), /*overwrite=*/1);
}

TEST_F(AutotuneTest, WhatABusyMachineChoseIsNotKept) {
  int64_t waited_ns = 0;
  const CoreWaitsFn waits = [&waited_ns] {
    return CoreWaits{{"1", waited_ns += 3600'000'000'000}};
  };
  Config config = config_;
  config.threads_auto = false;
  ASSERT_OK_AND_ASSIGN(const AutoChoice choice,
                       SettleAuto(config, data_, waits));
  EXPECT_TRUE(choice.busy);
  EXPECT_THAT(AutoText(choice), HasSubstr("the machine was busy: not kept\n"));
  EXPECT_NE(config.compile.dispatch, Dispatch::kAuto);
  EXPECT_FALSE(std::filesystem::exists(File()));
}

TEST(ThreadCountsTest, AreThoseGivenOrUpToAllThatTheAffinityAllows) {
  Config config;
  config.compile.threads = 6;
  EXPECT_THAT(ThreadCounts(config), ElementsAre(1, 2, 4, 6));
  config.compile.affinity = {Affinity::kList, {0, 1, 5}};
  EXPECT_THAT(ThreadCounts(config), ElementsAre(1, 2, 3));
  config.threads_auto = false;
  EXPECT_THAT(ThreadCounts(config), ElementsAre(6));
}

TEST_F(AutotuneTest, WhatIsGivenStays) {
  Config config = config_;
  config.compile.dispatch = Dispatch::kSingle;
  config.compile.threads = 1;
  config.threads_auto = false;
  config.input = InputMode::kSparse;
  ASSERT_OK_AND_ASSIGN(const AutoChoice choice, Settle(config));
  EXPECT_TRUE(choice.candidates.empty());
  EXPECT_EQ(config.input, InputMode::kSparse);
  EXPECT_GT(config.compile.sparse.nonzeros, 0);
  EXPECT_FALSE(std::filesystem::exists(File()));
  EXPECT_EQ(AutoText(choice), "");
}

TEST_F(AutotuneTest, DenseDataIsNotTriedSparse) {
  for (uint8_t& pixel : data_.images) pixel = 7;
  Config config = config_;
  ASSERT_OK_AND_ASSIGN(const AutoChoice choice, Settle(config));
  for (const AutoCandidate& candidate : choice.candidates) {
    EXPECT_EQ(candidate.input, InputMode::kDense);
  }
}

TEST_F(AutotuneTest, AFileOfAnotherKindIsWrittenAnew) {
  std::ofstream(File()) << "[1, 2";
  Config config = config_, second = config_;
  ASSERT_OK_AND_ASSIGN(AutoChoice choice, Settle(config));
  EXPECT_FALSE(choice.cached);
  ASSERT_OK_AND_ASSIGN(choice, Settle(second));
  EXPECT_TRUE(choice.cached);
}

TEST_F(AutotuneTest, WithoutAFolderItStillChooses) {
  std::ofstream(folder_.path() + "/plain") << "no folder";
  setenv("ONESTEP_CACHE", (folder_.path() + "/plain").c_str(), 1);
  Config config = config_;
  ASSERT_OK_AND_ASSIGN(const AutoChoice choice, Settle(config));
  EXPECT_FALSE(choice.cached);
  EXPECT_NE(config.compile.dispatch, Dispatch::kAuto);
}

}  // namespace
}  // namespace onestep
