// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/profile_report.h"

namespace onestep {
namespace {

using testing::HasSubstr;

const ModelSpec kModel = {{64, 32, 10}, Activation::kRelu, Loss::kSoftmaxXent};

// On a machine where nothing else runs, but for other `options`.
Profile ProfileOf(Dispatch dispatch, bool fuse, int threads,
                  ProfileOptions options = {
                      .steps = 1000, .waits = [] { return CoreWaits(); }}) {
  const Dataset data = RandomRows(4000, 64, 10, /*seed=*/1);
  CompileOptions compile;
  compile.dispatch = dispatch;
  compile.fuse = fuse;
  compile.threads = threads;
  auto profiles = ProfileSteps(kModel, {}, {{"way", compile}}, data, options);
  EXPECT_OK(profiles);
  return (*profiles)[0];
}

int Count(const Profile& profile, int worker, ProfileKind kind) {
  int count = 0;
  for (const ProfileRow& row : profile.rows) {
    count += row.worker == worker && row.kind == kind;
  }
  return count;
}

TEST(ProfileTest, EveryWorkerHasRowsOfWhatIsNoCall) {
  for (const Dispatch dispatch : {Dispatch::kOps, Dispatch::kSingle}) {
    const Profile profile = ProfileOf(dispatch, true, 2);
    EXPECT_GE(profile.steps, 1000);
    EXPECT_EQ(profile.workers, dispatch == Dispatch::kSingle ? 2 : 1);
    for (int w = 0; w < profile.workers; ++w) {
      EXPECT_EQ(Count(profile, w, ProfileKind::kUnaccounted), 1);
      EXPECT_EQ(Count(profile, w, ProfileKind::kDispatch), 1);
      EXPECT_EQ(Count(profile, w, ProfileKind::kRun), 1);
    }
  }
}

TEST(ProfileTest, OfABusyMachineSaysSo) {
  int64_t waited_ns = 0;
  const auto waits = [&waited_ns] {
    return CoreWaits{{"1", waited_ns += 3600'000'000'000}};
  };
  const Profile profile =
      ProfileOf(Dispatch::kOps, true, 1, {.steps = 1, .waits = waits});
  EXPECT_TRUE(profile.busy);
  EXPECT_GT(profile.slices.size(), 10);  // some more tries
  EXPECT_GT(profile.undisturbed_us, 0);
  EXPECT_THAT(ToText(profile), HasSubstr("\nnote: the machine was busy: "));
  EXPECT_EQ(ToJson(profile)["busy"], true);
}

TEST(ProfileTest, EndsWhenItsTimeIsUpAndSaysWhatIsMissing) {
  const Profile profile =
      ProfileOf(Dispatch::kOps, true, 1,
                {.steps = 1'000'000, .most_seconds = 1e-3, .waits = [] {
                   return CoreWaits();
                 }});
  EXPECT_EQ(profile.slices.size(), 1);
  EXPECT_FALSE(profile.busy);
  EXPECT_THAT(profile.note, HasSubstr(" steps: want 1000000"));
}

TEST(ProfileTest, AChainHasForksAndATeamWaits) {
  const Profile chain = ProfileOf(Dispatch::kOps, false, 2);
  EXPECT_EQ(Count(chain, 0, ProfileKind::kForkJoin), 1);
  EXPECT_EQ(Count(chain, 0, ProfileKind::kWait), 0);
  const Profile team = ProfileOf(Dispatch::kSingle, true, 2);
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(Count(team, w, ProfileKind::kForkJoin), 0);
    EXPECT_EQ(Count(team, w, ProfileKind::kWait), 1);
    EXPECT_EQ(Count(team, w, ProfileKind::kExchange), 2);
  }
}

TEST(ProfileTest, EveryWayIsInTheTrace) {
  const Dataset data = RandomRows(400, 64, 10, /*seed=*/1);
  CompileOptions fused, unfused;
  unfused.fuse = false;
  TraceFile trace;
  ProfileOptions options;
  options.steps = 1000;
  options.trace = &trace;
  options.trace_steps = 5;
  ASSERT_OK(ProfileSteps(kModel, {}, {{"unfused", unfused}, {"fused", fused}},
                         data, options));
  const std::string text = trace.ToJson().dump();
  for (const char* name : {"compile, unfused", "compile, fused",
                           "step 5, unfused", "step 5, fused"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
  EXPECT_THAT(text, testing::Not(HasSubstr("step 6")));
}

TEST(ProfileTest, ARowOfNoStepsHasAMeanAlone) {
  Profile profile;
  ProfileRow row;
  row.kind = ProfileKind::kUnaccounted;
  row.mean_us = row.median_us = row.p95_us = 1.5;
  profile.rows = {row};
  const std::string text = ToText(profile);
  EXPECT_EQ(text.find("1.500"), text.rfind("1.500"));
  row.kind = ProfileKind::kDispatch;
  profile.rows = {row};
  EXPECT_THAT(ToText(profile), HasSubstr("1.500    1.500    1.500"));
}

TEST(ProfileTest, SaysTheDispatchThatAutoLedTo) {
  EXPECT_EQ(ToJson(ProfileOf(Dispatch::kAuto, true, 1))["dispatch"], "ops");
  EXPECT_EQ(ToJson(ProfileOf(Dispatch::kSingle, true, 1))["dispatch"],
            "single");
}

TEST(ProfileTest, APrimitiveCostsMoreToCallThanAnEmptyCall) {
  const auto cost = MeasureDispatchCost();
  ASSERT_OK(cost);
  EXPECT_GT(cost->call_ns, 0);
  EXPECT_GT(cost->clock_ns, 0);
  EXPECT_GT(cost->clock_step_ns, 0);
  EXPECT_GT(cost->matmul_ns, cost->call_ns);
  EXPECT_GT(cost->eltwise_ns, cost->call_ns);
}

TEST(ProfileTest, JsonHasEveryRowWithFiniteNumbers) {
  const Profile profile = ProfileOf(Dispatch::kOps, true, 1);
  const nlohmann::ordered_json json = ToJson(profile);
  ASSERT_EQ(json["rows"].size(), profile.rows.size());
  for (const auto& row : json["rows"]) {
    EXPECT_TRUE(std::isfinite(row["mean_us"].get<double>()));
    EXPECT_TRUE(std::isfinite(row["share"].get<double>()));
  }
  EXPECT_EQ(json["rows"][1]["op"], "matmul");
  EXPECT_GT(json["rows"][1]["gflops"].get<double>(), 0);
  EXPECT_TRUE(json["rows"].back()["gflops"].is_null());
}

TEST(ProfileTest, ComparisonPutsTextbookOpsBesideWhatTheyBecame) {
  const auto row = [](const char* op, std::vector<int> origins, double us) {
    ProfileRow made;
    made.step.op = op;
    made.step.origins = std::move(origins);
    made.mean_us = us;
    return made;
  };
  Profile unfused, fused;
  unfused.rows = {row("matmul", {3}, 5), row("relu", {4}, 1),
                  row("matmul", {5}, 7), row("scale", {6}, 2)};
  unfused.undisturbed_us = 15;
  unfused.slices = {{15}, {16.5}, {900, false}, {15}, {15}};
  fused.rows = {row("matmul", {5}, 6), row("matmul", {3, 4}, 4)};
  fused.undisturbed_us = 10;
  fused.slices = {{10}, {11}, {10}, {900, false}, {10}};
  const std::string text = CompareText(unfused, fused);
  EXPECT_THAT(text, HasSubstr("matmul + relu"));
  EXPECT_THAT(text, testing::ContainsRegex("relu +6.000 +4.000  matmul"));
  EXPECT_THAT(text, testing::ContainsRegex("matmul +7.000 +6.000  matmul"));
  EXPECT_THAT(text, testing::ContainsRegex("scale +2.000 +nothing"));
  EXPECT_THAT(text, HasSubstr("in turn: 1.50 (95 %: 1.50 to 1.50)\n"));
  EXPECT_EQ(RatioToJson(unfused, fused)["busy"], false);
  fused.busy = true;
  EXPECT_THAT(CompareText(unfused, fused),
              HasSubstr("1.50); the machine was busy\n"));
  EXPECT_EQ(RatioToJson(unfused, fused)["busy"], true);
}

}  // namespace
}  // namespace onestep
