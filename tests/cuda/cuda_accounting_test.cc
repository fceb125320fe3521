// SPDX-License-Identifier: Apache-2.0
// What the accounting of a run says, against the emulator's log of calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "runtime/cuda/timed_cuda.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/profile.h"
#include "trainer/measure/profile_report.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

class CudaAccountingTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<StepSession>> Session(Dispatch dispatch,
                                                       CudaTier tier) {
    CompileOptions options;
    options.device = Device::kGpu;
    options.dispatch = dispatch;
    options.cuda.cuda = &timed_;
    options.cuda.tier = tier;
    options.cuda.steps_per_launch = 4;
    return StepSession::Create({.widths = {16, 8, 3}}, {}, options, data_, 4);
  }

  void Mark() {
    timed_.Reset();
    emulated_.log().Mark();
  }

  // In the words of CallLog::Counts.
  std::string Counts() const {
    std::map<std::string, int64_t> counts;
    for (const CudaCallStats& s : timed_.Stats()) counts[s.call] = s.calls;
    std::string text;
    for (const auto& [call, calls] : counts) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", call, " ", calls);
    }
    return text;
  }

  const Dataset data_ = RandomRows(/*rows=*/200, 16, 3, /*seed=*/1);
  EmulatedCuda emulated_;
  TimedCuda timed_{emulated_};
};

TEST_F(CudaAccountingTest, CountsTheCallsOfARun) {
  for (const auto& [dispatch, tier] :
       {std::pair{Dispatch::kOps, CudaTier::kLibrary},
        std::pair{Dispatch::kGraph, CudaTier::kFused},
        std::pair{Dispatch::kSingle, CudaTier::kPersistent}}) {
    Mark();
    ASSERT_OK_AND_ASSIGN(const auto session, Session(dispatch, tier));
    ASSERT_OK(session->Run(14));
    EXPECT_EQ(Counts(), emulated_.log().Counts());
    Mark();
    ASSERT_OK(session->Run(14));
    EXPECT_EQ(Counts(), emulated_.log().Counts());
  }
}

TEST_F(CudaAccountingTest, ATracedNodeIsALaunchBetweenTwoEventsAndAWait) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kGraph, CudaTier::kFused));
  std::vector<StepTrace> traces;
  ASSERT_OK(session->RunTraced(5, traces));
  Mark();
  ASSERT_OK(session->RunTraced(5, traces));
  EXPECT_EQ(Counts(),
            "CopyToHost 2, Elapsed 20, "
            "LaunchKernel 20, Preload 4, Record 40, Synchronize 2, "
            "WaitOnHost 20");
  EXPECT_EQ(Counts(), emulated_.log().Counts());
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
    ASSERT_EQ(profile->accounting.size(), 2u);
    EXPECT_FALSE(profile->accounting[0].calls.empty());
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
