// SPDX-License-Identifier: Apache-2.0
// The calls of CUDA that a profile lists, on the emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "compiler/compiler.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/profile.h"
#include "trainer/measure/profile_report.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

TEST(CudaAccountingTest, ATracedNodeIsALaunchBetweenTwoEventsAndAWait) {
  const Dataset data = RandomRows(/*rows=*/200, 16, 3, /*seed=*/1);
  EmulatedCuda cuda;
  CompileOptions options;
  options.device = Device::kGpu;
  options.dispatch = Dispatch::kGraph;
  options.cuda.cuda = &cuda;
  options.cuda.tier = CudaTier::kFused;
  options.cuda.steps_per_launch = 4;
  ASSERT_OK_AND_ASSIGN(
      const auto session,
      StepSession::Create({.widths = {16, 8, 3}}, {}, options, data, 4));
  std::vector<StepTrace> traces;
  ASSERT_OK(session->RunTraced(5, traces));
  cuda.log().Mark();
  ASSERT_OK(session->RunTraced(5, traces));
  EXPECT_EQ(cuda.log().Counts(),
            "CopyToHost 2, Elapsed 20, "
            "LaunchKernel 20, Preload 4, Record 40, Synchronize 2, "
            "WaitOnHost 20");
}

TEST(CudaAccountingTest, HasTheCallsOfTheStepsThatItRuns) {
  const Dataset data = RandomRows(/*rows=*/200, 16, 3, /*seed=*/1);
  EmulatedCuda cuda;
  CompileOptions options;
  options.device = Device::kGpu;
  options.dispatch = Dispatch::kGraph;
  options.cuda.cuda = &cuda;
  options.cuda.tier = CudaTier::kFused;
  options.cuda.steps_per_launch = 4;
  ASSERT_OK_AND_ASSIGN(
      const auto session,
      StepSession::Create({.widths = {16, 8, 3}}, {}, options, data, 4));
  ASSERT_OK(session->Run(8));
  ASSERT_OK_AND_ASSIGN(const CudaAccounting accounting,
                       AccountForCalls(*session, cuda, /*steps=*/8, 3));
  EXPECT_EQ(accounting.note, "");
  EXPECT_EQ(accounting.steps, 24);
  int64_t launches = 0;
  for (const CudaCallStats& stats : accounting.calls) {
    if (stats.call == "LaunchGraph") launches = stats.calls;
  }
  EXPECT_EQ(launches, 6);
}

TEST(CudaProfileTest, SaysThatNothingCountsTheCalls) {
  Profile profile;
  profile.device = Device::kGpu;
  profile.accounting.emplace().note = "the calls of CUDA are not counted: why";
  EXPECT_THAT(ToText(profile),
              testing::HasSubstr("\nthe calls of CUDA are not counted: why\n"));
}

// Two CPU threads, as is the default: they are nothing to a GPU's profile.
TEST(CudaProfileTest, HasTheNodesTimesAndTheCallsOfUndisturbedSteps) {
  EmulatedCuda emulated;
  const Dataset data = RandomRows(/*rows=*/400, 16, 3, /*seed=*/1);
  CompileOptions compile;
  compile.device = Device::kGpu;
  compile.threads = 2;
  compile.cuda.cuda = &emulated;
  ProfileOptions options;
  options.batch = 4;
  options.steps = 20;
  for (const CudaTier tier : {CudaTier::kFused, CudaTier::kPersistent}) {
    compile.cuda.tier = tier;
    const auto profiles = ProfileSteps({.widths = {16, 8, 3}}, {},
                                       {{"way", compile}}, data, options);
    ASSERT_OK(profiles);
    const Profile* const profile = &(*profiles)[0];
    ASSERT_TRUE(profile->accounting.has_value());
    EXPECT_FALSE(profile->accounting->calls.empty());
    EXPECT_GT(profile->undisturbed_us, 0);
    // Three kernels and the step's boundary, or one kernel for many steps.
    const bool nodes = tier == CudaTier::kFused;
    EXPECT_EQ(profile->rows.size(), nodes ? 5u : 1u);
    EXPECT_EQ(profile->steps >= 20, nodes);
    // The emulator's clock has all kernels take as long as the empty one.
    EXPECT_EQ(profile->cost.clock_ns, nodes ? 2000 : 0);
    if (nodes) {
      EXPECT_EQ(profile->rows[0].mean_us, 0);
      EXPECT_THAT(ToText(*profile),
                  testing::HasSubstr("taken off: 2000.0 ns a call"));
    }
    // On a busy machine the note also says which samples were left out.
    EXPECT_NE(absl::StrContains(profile->note, "a kernel runs whole steps"),
              nodes)
        << profile->note;
    EXPECT_THAT(ToText(*profile), testing::HasSubstr("calls of CUDA in "));
  }
}

}  // namespace
}  // namespace onestep
