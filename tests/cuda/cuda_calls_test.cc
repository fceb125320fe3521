// SPDX-License-Identifier: Apache-2.0
// Which CUDA calls a run makes, and in what order; on the emulator only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "runtime/cuda_graph.h"
#include "runtime/cuda_program.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/step_session.h"

namespace onestep {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CudaCallsTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<StepSession>> Session(
      Dispatch dispatch, CudaTier tier, int64_t steps_per_launch = 1) {
    CompileOptions options;
    options.device = Device::kGpu;
    options.dispatch = dispatch;
    options.cuda.cuda = &cuda_;
    options.cuda.tier = tier;
    options.cuda.steps_per_launch = steps_per_launch;
    return StepSession::Create(model_, {}, options, data_, /*batch=*/4);
  }

  // The calls of a run of `steps`, in steady state.
  std::string CallsOf(StepSession& session, int64_t steps) {
    EXPECT_OK(session.Run(1));
    EXPECT_OK(session.Run(steps));
    cuda_.log().Mark();
    EXPECT_OK(session.Run(steps));
    return cuda_.log().Counts();
  }

  void TearDown() override {
    EXPECT_EQ(cuda_.LiveObjects(), "");
    EXPECT_THAT(cuda_.errors(), testing::IsEmpty());
  }

  ModelSpec model_{.widths = {16, 8, 3}};
  Dataset data_ = RandomRows(200, 16, 3, /*seed=*/1);
  EmulatedCuda cuda_;
};

TEST_F(CudaCallsTest, AGraphIsLaunchedOncePerStep) {
  for (const CudaTier tier : {CudaTier::kT0, CudaTier::kT1}) {
    ASSERT_OK_AND_ASSIGN(const auto session, Session(Dispatch::kGraph, tier));
    // Then the losses and counts come back, and nothing else.
    EXPECT_EQ(CallsOf(*session, 5),
              "CopyToHost 2, LaunchGraph 5, Synchronize 1")
        << ToString(tier);
  }
}

TEST_F(CudaCallsTest, AnUnrolledGraphIsLaunchedOncePerNSteps) {
  for (const auto& [dispatch, tier] :
       {std::pair{Dispatch::kGraph, CudaTier::kT0},
        std::pair{Dispatch::kGraph, CudaTier::kT1},
        std::pair{Dispatch::kSingle, CudaTier::kT2}}) {
    ASSERT_OK_AND_ASSIGN(const auto session, Session(dispatch, tier, 4));
    // 14 steps: three graphs of four, two of one.
    EXPECT_EQ(CallsOf(*session, 14),
              "CopyToHost 2, LaunchGraph 5, Synchronize 1")
        << ToString(tier);
  }
}

TEST_F(CudaCallsTest, APersistentKernelIsLaunchedOncePerSlice) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kSingle, CudaTier::kT3));
  const std::string calls = CallsOf(*session, 15);
  // The host asks whether it is done, as often as that takes.
  EXPECT_THAT(
      calls, testing::MatchesRegex("CopyToHost 2, Done [0-9]+, LaunchKernel 1, "
                                   "Synchronize 1"));
}

TEST_F(CudaCallsTest, OpsAreALaunchEach) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kOps, CudaTier::kT1));
  EXPECT_EQ(session->executable().dispatches(), 4);
  EXPECT_EQ(CallsOf(*session, 5),
            "CopyToHost 2, LaunchKernel 20, Synchronize 1");
}

// Whatever the run, from its first launch to its last there is nothing but
// launches.
TEST_F(CudaCallsTest, NothingIsCopiedAllocatedOrWaitedForBetweenSteps) {
  for (const auto& [dispatch, tier] :
       {std::pair{Dispatch::kOps, CudaTier::kT0},
        std::pair{Dispatch::kGraph, CudaTier::kT0},
        std::pair{Dispatch::kGraph, CudaTier::kT1},
        std::pair{Dispatch::kSingle, CudaTier::kT2}}) {
    ASSERT_OK_AND_ASSIGN(const auto session, Session(dispatch, tier, 2));
    const size_t before = cuda_.log().calls().size();
    ASSERT_OK(session->Run(20));
    const auto& calls = cuda_.log().calls();
    const auto is_launch = [](const CudaCall& call) {
      return call.name == "LaunchGraph" || call.name == "LaunchKernel" ||
             call.name == "RunMatMul";
    };
    // What prepares the run ends with the last call of another kind before it.
    size_t last = calls.size();
    while (!is_launch(calls[last - 1])) --last;
    size_t first = last;
    while (first > before && is_launch(calls[first - 1])) --first;
    EXPECT_GE(last - first, 10u) << cuda_.log();
    for (size_t i = before; i < first; ++i) {
      EXPECT_NE(calls[i].name, "LaunchGraph") << cuda_.log();
    }
    EXPECT_EQ(session->executable().traffic()->in_steps_bytes, 0);
  }
}

TEST_F(CudaCallsTest, AnEpochCopiesItsRowOrderAndRatesOnce) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kGraph, CudaTier::kT1));
  ASSERT_OK(session->Run(50));  // an epoch: 200 rows
  const int64_t before = session->executable().traffic()->to_device_bytes;
  cuda_.log().Mark();
  for (int step = 0; step < 50; ++step) ASSERT_OK(session->Run(1));
  EXPECT_EQ(cuda_.log().Count("CopyToDevice"), 2) << cuda_.log();
  EXPECT_EQ(session->executable().traffic()->to_device_bytes - before,
            200 * 4 + 50 * 4);
}

TEST_F(CudaCallsTest, AMatMulThatTheLibraryLacksIsOurs) {
  EmulatedCuda cuda({.no_algorithm = [](const CudaMatMul& matmul) {
    return matmul.mask_out;
  }});
  CompileOptions options;
  options.device = Device::kGpu;
  options.dispatch = Dispatch::kGraph;
  options.cuda.cuda = &cuda;
  options.cuda.tier = CudaTier::kT0;
  {
    ASSERT_OK_AND_ASSIGN(const auto session,
                         StepSession::Create(model_, {}, options, data_, 4));
    EXPECT_THAT(session->compiled().cuda->notes,
                testing::Contains(HasSubstr("not fused")));
    ASSERT_OK(session->Run(3));
  }
  EXPECT_EQ(cuda.LiveObjects(), "");
}

TEST_F(CudaCallsTest, TheFusedMatMulsAreTheLibrarys) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kGraph, CudaTier::kT0));
  std::vector<std::string> matmuls;
  for (const CudaNode& node : session->compiled().cuda->program->Nodes()) {
    if (node.library) matmuls.push_back(node.matmul.ToString());
  }
  EXPECT_THAT(matmuls, testing::Contains(HasSubstr("relu_aux_bias")));
  EXPECT_THAT(matmuls, testing::Contains(HasSubstr("drelu_bgrad")));
  EXPECT_THAT(session->compiled().cuda->notes, testing::IsEmpty());
}

CudaNode Node(std::vector<int> reads, std::vector<int> writes) {
  CudaNode node;
  node.reads = std::move(reads);
  node.writes = std::move(writes);
  return node;
}

TEST(CudaGraphTest, EdgesFollowWhatIsReadAndWritten) {
  const std::vector<CudaNode> nodes = {
      Node({0}, {1}),     // 0
      Node({0}, {2}),     // 1: beside 0
      Node({1, 2}, {3}),  // 2: after both
      Node({4}, {1}),     // 3: overwrites what 2 read
      Node({3}, {0}),     // 4: overwrites what 0 and 1 read, which 2 waits for
      Node({1}, {}),      // 5
      Node({1}, {2}),     // 6: 2 read that, and comes before 3
  };
  EXPECT_THAT(DependenciesOf(nodes),
              ElementsAre(ElementsAre(), ElementsAre(), ElementsAre(0, 1),
                          ElementsAre(2), ElementsAre(2), ElementsAre(3),
                          ElementsAre(3)));
}

}  // namespace
}  // namespace onestep
