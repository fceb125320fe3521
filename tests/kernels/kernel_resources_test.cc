// SPDX-License-Identifier: Apache-2.0
// What nvcc made of the kernels: registers and memory against a budget, and
// the instructions that a kernel stands or falls with.
#include "kernels/kernel_resources.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/kernels.h"
#include "kernels/probe_launch.h"

namespace onestep {
namespace {

// The most registers of a thread; the first row whose prefix a name has.
struct Budget {
  const char* prefix;
  int registers;
};
constexpr Budget kBudgets[] = {
    {"HiddenSplit", 128},  // one block of 512 threads on a multiprocessor
    {"MatMul", 144},
    {"", 64},
};

// What the PTX of each kernel with this prefix has and has not, on sm_90 and
// newer.
struct Claim {
  const char* prefix;
  std::vector<std::string> has, has_not = {};
};
const std::vector<Claim>& Claims() {
  static const std::vector<std::string> kOverlaps = {
      "griddepcontrol.launch_dependents", "griddepcontrol.wait"};
  static const std::vector<Claim> claims = {
      {"EmptyKernel<true>", kOverlaps},
      {"EmptyKernel<false>", {}, {"griddepcontrol"}},
      {"HiddenSplitForwardKernel", kOverlaps},
      {"HiddenSplitLossKernel", kOverlaps},
      {"HiddenSplitBackwardKernel", kOverlaps},
      {"HiddenSplitPersistentKernel",
       {"mbarrier.try_wait", "mbarrier.arrive.expect_tx",
        "barrier.cluster.arrive", "barrier.cluster.wait",
        "cp.async.bulk.shared::cluster"}},
      // In 3 parts or 1 on tensor cores, in 0 by FMAs.
      {"HiddenSplitForwardKernel<3>", {"mma.sync"}},
      {"HiddenSplitForwardKernel<1>", {"mma.sync"}},
      {"HiddenSplitForwardKernel<0>", {}, {"mma.sync"}},
      {"HiddenSplitBackwardKernel<3>", {"mma.sync"}},
      {"HiddenSplitBackwardKernel<1>", {"mma.sync"}},
      {"HiddenSplitBackwardKernel<0>", {}, {"mma.sync"}},
      {"HiddenSplitPersistentKernel<1,3>", {"mma.sync"}},
      {"HiddenSplitPersistentKernel<1,1>", {"mma.sync"}},
      {"HiddenSplitPersistentKernel<1,0>", {}, {"mma.sync"}},
      {"HiddenSplitPersistentKernel<2,3>", {"mma.sync"}},
      {"HiddenSplitPersistentKernel<2,1>", {"mma.sync"}},
      {"HiddenSplitPersistentKernel<2,0>", {}, {"mma.sync"}},
      {"CopyKernel", {"ld.global.v4", "st.global.v4"}},
  };
  return claims;
}

int BudgetOf(const std::string& name) {
  for (const Budget& budget : kBudgets) {
    if (absl::StartsWith(name, budget.prefix)) return budget.registers;
  }
  return 0;
}

// The text of every kernel of an architecture, by symbol.
std::map<std::string, std::string> PtxOf(int arch) {
  std::map<std::string, std::string> bodies;
  const std::string suffix = absl::StrCat(".sm_", arch, ".ptx");
  for (const auto& file :
       std::filesystem::directory_iterator(ONESTEP_PTX_DIR)) {
    if (!absl::EndsWith(file.path().string(), suffix)) continue;
    std::stringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const std::string ptx = text.str();
    constexpr char kEntry[] = ".entry ";
    for (size_t at = ptx.find(kEntry); at != std::string::npos;
         at = ptx.find(kEntry, at + 1)) {
      const size_t name = at + sizeof(kEntry) - 1;
      const std::string symbol = ptx.substr(name, ptx.find('(', name) - name);
      bodies[symbol] = ptx.substr(at, ptx.find("\n}", at) - at);
    }
  }
  return bodies;
}

TEST(KernelResourcesTest, NoKernelSpillsOrHasStaticSharedMemory) {
  EXPECT_FALSE(AllKernelResources().empty());
  for (const KernelResources& row : AllKernelResources()) {
    EXPECT_EQ(row.spill_bytes, 0) << row.name << " sm_" << row.arch;
    EXPECT_EQ(row.shared_bytes, 0) << row.name << " sm_" << row.arch;
  }
}

TEST(KernelResourcesTest, EveryKernelKeepsItsBudgetOfRegisters) {
  for (const KernelResources& row : AllKernelResources()) {
    EXPECT_LE(row.registers, BudgetOf(row.name))
        << row.name << " sm_" << row.arch;
  }
}

TEST(KernelResourcesTest, PtxHasTheInstructionsThatAreClaimed) {
  std::map<int, std::map<std::string, std::string>> ptx;
  for (const Claim& claim : Claims()) {
    bool found = false;
    for (const KernelResources& row : AllKernelResources()) {
      if (row.arch < 90) found = true;  // another build's claim
      if (row.arch < 90 || !absl::StartsWith(row.name, claim.prefix)) continue;
      found = true;
      if (!ptx.contains(row.arch)) ptx[row.arch] = PtxOf(row.arch);
      const std::string& body = ptx[row.arch][row.symbol];
      for (const std::string& text : claim.has) {
        EXPECT_TRUE(absl::StrContains(body, text))
            << row.name << " sm_" << row.arch << ": no " << text;
      }
      for (const std::string& text : claim.has_not) {
        EXPECT_FALSE(absl::StrContains(body, text))
            << row.name << " sm_" << row.arch << ": " << text;
      }
    }
    EXPECT_TRUE(found) << claim.prefix << ": no such kernel";
  }
}

TEST(KernelResourcesTest, LaunchesAreFoundByTheirNames) {
  cuda::MatMulParams matmul = {};
  matmul.m = matmul.n = matmul.k = 64;
  const cuda::BoundaryParams boundary = {};
  for (const Launch& launch :
       {cuda::ProbeEmpty(true), cuda::Fill(nullptr, 0, 4),
        cuda::CastU8(nullptr, nullptr, 3),
        cuda::Softmax(nullptr, nullptr, 4, 10), cuda::MatMul(matmul),
        cuda::StepBoundary(boundary)}) {
    const KernelResources* const row = FindKernelResources(launch.name);
    ASSERT_NE(row, nullptr) << launch.name;
    EXPECT_GT(row->registers, 0) << launch.name;
  }
  EXPECT_EQ(FindKernelResources("EmptyKernel<33>"), nullptr);
}

}  // namespace
}  // namespace onestep
