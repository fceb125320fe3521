// SPDX-License-Identifier: Apache-2.0
// Which CUDA calls a run makes, and in what order; on the emulator only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "runtime/cuda/cuda_graph.h"
#include "runtime/cuda/cuda_program.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

CompileOptions Options(EmulatedCuda& cuda, Dispatch dispatch, CudaTier tier) {
  CompileOptions options;
  options.device = Device::kGpu;
  options.dispatch = dispatch;
  options.cuda.cuda = &cuda;
  options.cuda.tier = tier;
  return options;
}

class CudaCallsTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<StepSession>> Session(
      Dispatch dispatch, CudaTier tier, int64_t steps_per_launch = 1) {
    CompileOptions options = Options(cuda_, dispatch, tier);
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
  for (const CudaTier tier : {CudaTier::kLibrary, CudaTier::kFused}) {
    ASSERT_OK_AND_ASSIGN(const auto session, Session(Dispatch::kGraph, tier));
    // Then the losses and counts come back, and nothing else.
    EXPECT_EQ(CallsOf(*session, 5),
              "CopyToHost 2, LaunchGraph 5, Synchronize 1")
        << ToString(tier);
  }
}

TEST_F(CudaCallsTest, AnUnrolledGraphIsLaunchedOncePerNSteps) {
  for (const CudaTier tier : {CudaTier::kLibrary, CudaTier::kFused}) {
    ASSERT_OK_AND_ASSIGN(const auto session,
                         Session(Dispatch::kGraph, tier, 4));
    // 14 steps: three graphs of four, two of one.
    EXPECT_EQ(CallsOf(*session, 14),
              "CopyToHost 2, LaunchGraph 5, Synchronize 1")
        << ToString(tier);
  }
}

TEST_F(CudaCallsTest, APersistentKernelIsLaunchedOncePerSlice) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kSingle, CudaTier::kPersistent));
  const std::string calls = CallsOf(*session, 15);
  // The host asks whether it is done, as often as that takes.
  EXPECT_THAT(
      calls, testing::MatchesRegex("CopyToHost 2, Done [0-9]+, LaunchKernel 1, "
                                   "Synchronize 1"));
}

TEST_F(CudaCallsTest, AKernelThatOutlivesItsSliceIsStoppedAndLaunchedAgain) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kSingle, CudaTier::kPersistent));
  ASSERT_OK(session->Run(4));
  // A device so busy that it begins a kernel after the time of a slice.
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> since;
  EmulatedCuda busy({.busy = [&since] {
    if (!since) since = Clock::now();
    const std::chrono::duration<double> waited = Clock::now() - *since;
    if (waited.count() < 1.2 * CudaProgram::kSliceSeconds) return true;
    since.reset();
    return false;
  }});
  const CompileOptions options =
      Options(busy, Dispatch::kSingle, CudaTier::kPersistent);
  ASSERT_OK_AND_ASSIGN(const auto sliced,
                       StepSession::Create(model_, {}, options, data_, 4));
  ASSERT_OK(sliced->Run(4));
  EXPECT_EQ(sliced->loss(), session->loss());
  EXPECT_EQ(session->executable().traffic()->launches, 1);
  // A stop counts after the first step.
  EXPECT_EQ(sliced->executable().traffic()->launches, 4);
}

TEST_F(CudaCallsTest, OpsAreALaunchEach) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kOps, CudaTier::kFused));
  EXPECT_EQ(session->executable().dispatches(), 4);
  EXPECT_EQ(CallsOf(*session, 5),
            "CopyToHost 2, LaunchKernel 20, Synchronize 1");
}

// Whatever the run, from its first launch to its last there is nothing but
// launches.
TEST_F(CudaCallsTest, NothingIsCopiedAllocatedOrWaitedForBetweenSteps) {
  for (const auto& [dispatch, tier] :
       {std::pair{Dispatch::kOps, CudaTier::kLibrary},
        std::pair{Dispatch::kGraph, CudaTier::kLibrary},
        std::pair{Dispatch::kGraph, CudaTier::kFused}}) {
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
                       Session(Dispatch::kGraph, CudaTier::kFused));
  ASSERT_OK(session->Run(50));  // an epoch: 200 rows
  const int64_t before = session->executable().traffic()->to_device_bytes;
  cuda_.log().Mark();
  for (int step = 0; step < 50; ++step) ASSERT_OK(session->Run(1));
  EXPECT_EQ(cuda_.log().Count("CopyToDevice"), 2) << cuda_.log();
  EXPECT_EQ(cuda_.log().Count("Instantiate"), 0) << cuda_.log();
  EXPECT_EQ(session->executable().traffic()->to_device_bytes - before,
            200 * 4 + 50 * 4);
}

// Four steps of a graph: what it is made of, and nothing else.
TEST_F(CudaCallsTest, AGraphHasTheNodesOfItsSteps) {
  const auto nodes = [&](Dispatch dispatch, CudaTier tier) -> std::string {
    const auto session = Session(dispatch, tier, 4);
    EXPECT_OK(session.status());
    if (!session.ok()) return "";
    cuda_.log().Mark();
    EXPECT_OK((*session)->Run(4));
    return absl::StrCat(cuda_.log().Count("AddKernel"), " kernels, ",
                        cuda_.log().Count("AddChildGraph"), " of the library, ",
                        cuda_.log().Count("Instantiate"), " graph");
  };
  EXPECT_EQ(nodes(Dispatch::kGraph, CudaTier::kLibrary),
            "16 kernels, 20 of the library, 1 graph");
  EXPECT_EQ(nodes(Dispatch::kGraph, CudaTier::kFused),
            "13 kernels, 0 of the library, 1 graph");
}

// With a device as without one: the plan is of a step with all bound.
TEST_F(CudaCallsTest, TheReportHasTheNodesOfAStep) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kGraph, CudaTier::kLibrary));
  const CudaReport& report = *session->compiled().cuda;
  EXPECT_THAT(report.nodes, HasSubstr("9  step boundary "));
  EXPECT_THAT(report.nodes_dot, HasSubstr("StepBoundary"));
  EXPECT_THAT(report.nodes, Not(HasSubstr("\n10 ")));
}

TEST_F(CudaCallsTest, ADrawingIsOfTheGraphThatRuns) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kGraph, CudaTier::kFused, 4));
  ASSERT_OK(session->Run(4));
  const TempFolder folder;
  const std::string file = folder.path() + "/step.dot";
  ASSERT_OK(session->compiled().cuda->program->WriteDot(file));
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  int kernels = 0;
  for (const char* name : {"HiddenSplitForward", "HiddenSplitLoss",
                           "HiddenSplitBackward", "Advance"}) {
    for (size_t at = text.str().find(name); at != std::string::npos;
         at = text.str().find(name, at + 1)) {
      ++kernels;
    }
  }
  EXPECT_EQ(kernels, 13) << text.str();
}

TEST_F(CudaCallsTest, GraphsThatAreMadeAnewLeaveNothingBehind) {
  ASSERT_OK_AND_ASSIGN(const auto session,
                       Session(Dispatch::kGraph, CudaTier::kLibrary));
  Executable& executable = session->executable();
  float correct = 0;
  // A result more or less is a graph of other nodes.
  const auto recapture = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_OK(executable.Bind("correct", i % 2 == 0 ? nullptr : &correct));
      ASSERT_OK(session->Run(1));
    }
  };
  recapture(100);
  const std::string before = cuda_.LiveObjects();
  ASSERT_OK_AND_ASSIGN(const int64_t free, cuda_.FreeMemory());
  cuda_.log().Mark();
  recapture(200);
  EXPECT_EQ(cuda_.log().Count("Instantiate"), 200);
  EXPECT_EQ(cuda_.log().Count("PlanMatMul"), 0);
  EXPECT_EQ(cuda_.LiveObjects(), before);
  ASSERT_OK_AND_ASSIGN(const int64_t free_now, cuda_.FreeMemory());
  EXPECT_EQ(free_now, free);
}

TEST_F(CudaCallsTest, GraphsEndBeforeTheirMemoryAndThatBeforeTheStream) {
  ASSERT_OK_AND_ASSIGN(auto session,
                       Session(Dispatch::kGraph, CudaTier::kLibrary));
  ASSERT_OK(session->Run(3));
  const size_t before = cuda_.log().calls().size();
  session.reset();
  const std::vector<CudaCall>& calls = cuda_.log().calls();
  EXPECT_EQ(calls[before].name, "Synchronize");
  std::vector<std::string> order;
  for (size_t i = before; i < calls.size(); ++i) {
    const std::string& name = calls[i].name;
    if (name == "Synchronize" || name == "FreeHost") continue;
    if (order.empty() || order.back() != name) order.push_back(name);
  }
  // The library's workspace goes after its plans.
  EXPECT_THAT(order, ElementsAre("DestroyGraphExec", "Free",
                                 "DestroyMatMulPlan", "Free", "DestroyStream"));
}

TEST_F(CudaCallsTest, AProgramsEndLeavesTheOthersTheirMemory) {
  ASSERT_OK_AND_ASSIGN(auto first,
                       Session(Dispatch::kGraph, CudaTier::kLibrary));
  ASSERT_OK_AND_ASSIGN(const auto second,
                       Session(Dispatch::kGraph, CudaTier::kLibrary));
  ASSERT_OK(first->Run(2));
  ASSERT_OK(second->Run(1));
  const float loss = first->loss();
  first.reset();
  ASSERT_OK(second->Run(1));
  EXPECT_EQ(second->loss(), loss);
}

// On a device that places clusters of at most `most` blocks: what was refused,
// and then the tier and its cluster.
std::vector<std::string> Clusters(int64_t hidden, int most) {
  EmulatedCuda cuda({.max_active_clusters = [most](const Launch& launch) {
    return static_cast<int>(launch.cluster) <= most ? 1 : 0;
  }});
  const CompileOptions options =
      Options(cuda, Dispatch::kAuto, CudaTier::kAuto);
  const Dataset data = RandomRows(20, 16, 3, /*seed=*/1);
  const auto session = StepSession::Create({.widths = {16, hidden, 3}}, {},
                                           options, data, /*batch=*/4);
  EXPECT_OK(session.status());
  if (!session.ok()) return {};
  EXPECT_OK((*session)->Run(3));
  const CudaReport& report = *(*session)->compiled().cuda;
  std::vector<std::string> said = report.notes;
  said.push_back(absl::StrCat(ToString(report.tier), ", cluster of ",
                              report.program->Nodes()[0].launch.cluster));
  return said;
}

TEST(CudaClusterTest, IsAsLargeAsTheDevicePlacesOne) {
  const std::string no =
      "tier persistent: the device cannot place a cluster of ";
  const std::string none =
      "tier persistent: the device has no clusters of blocks";
  EXPECT_THAT(Clusters(128, 16), ElementsAre("persistent, cluster of 16"));
  EXPECT_THAT(Clusters(128, 8),
              ElementsAre(no + "16", "persistent, cluster of 8"));
  EXPECT_THAT(Clusters(128, 1),
              ElementsAre(no + "16", no + "8", none, "fused, cluster of 1"));
  // Of fewer blocks than 8, the one size is asked for once.
  EXPECT_THAT(Clusters(32, 1),
              ElementsAre(no + "4", none, "fused, cluster of 1"));
}

TEST_F(CudaCallsTest, AMatMulThatTheLibraryLacksIsOurs) {
  EmulatedCuda cuda({.no_algorithm = [](const CudaMatMul& matmul) {
    return matmul.mask_out;
  }});
  const CompileOptions options =
      Options(cuda, Dispatch::kGraph, CudaTier::kLibrary);
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
                       Session(Dispatch::kGraph, CudaTier::kLibrary));
  std::vector<std::string> matmuls;
  for (const CudaNode& node : session->compiled().cuda->program->Nodes()) {
    if (node.library) matmuls.push_back(node.matmul.ToString());
  }
  EXPECT_THAT(session->executable().steps()[1].implementation,
              "cublasLt: plain loops");
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
