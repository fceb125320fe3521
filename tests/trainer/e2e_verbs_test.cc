// SPDX-License-Identifier: Apache-2.0
// The verbs that show and time the step, from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/trainer/cli_fixture.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class E2eVerbsTest : public CliTest {};

TEST_F(E2eVerbsTest, GraphNeedsNoDataAndEndsWithTheCounts) {
  const CliResult result = Run({"graph"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, StartsWith("onestep: 784-128-10, relu, "));
  EXPECT_THAT(result.out, HasSubstr("\nunfused: 24 ops -> fused: "));
  EXPECT_THAT(result.out, EndsWith(" steps\n"));
}

TEST_F(E2eVerbsTest, ProfileShowsTheStepComparesAndWritesATrace) {
  std::vector<std::string> args = {"profile", "--model",   "8-16-4",
                                   "--batch", "4",         "--steps",
                                   "1000",    "--threads", "1"};
  const CliResult text = Run(args);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(StartsWith("profile: 8-16-4, relu, "),
                              HasSubstr("\nfused: "), HasSubstr("unaccounted"),
                              HasSubstr("\nstep undisturbed ")));

  args.insert(args.end(), {"--compare", "--json", "--trace", "trace.json"});
  const CliResult result = Run(args);
  ASSERT_EQ(result.code, 0) << result.err;
  const json profile = json::parse(result.out);
  ASSERT_EQ(profile["profiles"].size(), 2);
  for (const json& way : profile["profiles"]) {
    EXPECT_GT(way["steps"], 0);
    EXPECT_GT(way["undisturbed_us"], 0);
    EXPECT_EQ(way["rows"].back()["op"], "unaccounted");
  }
  EXPECT_GT(profile["profiles"][0]["rows"].size(),
            profile["profiles"][1]["rows"].size());
  EXPECT_GT(profile["unfused_over_fused"]["value"], 0);
  EXPECT_GT(json::parse(Read("trace.json"))["traceEvents"].size(), 100);
}

TEST_F(E2eVerbsTest, GraphMakesTheFolderOfItsDumps) {
  EXPECT_EQ(Run({"graph", "--dump-ir", "a/b"}).code, 0);
  EXPECT_TRUE(Exists("a/b/10-fuse-bias-activation.txt"));
}

TEST_F(E2eVerbsTest, GraphWithoutGraphvizSaysSo) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nonexistent", /*overwrite=*/1);
  const CliResult result = Run({"graph", "--format", "svg"});
  setenv("PATH", path.c_str(), /*overwrite=*/1);
  EXPECT_EQ(result.code, 5);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "trainer: dot: not found; install graphviz\n");
}

TEST_F(E2eVerbsTest, GraphDraws) {
  const CliResult result = Run({"graph", "--format=svg"});
  if (result.code == 5) GTEST_SKIP() << result.err;
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("<svg"), HasSubstr("relu"), HasSubstr("</svg>")));
}

// The plan needs no GPU, but the program must have been built for one.
TEST_F(E2eVerbsTest, GraphPlansForAGpuThatIsNotThere) {
  const std::string file = Path("step.dot");
  const CliResult result =
      Run({"graph", "--device", "gpu", "--tier", "fused", "--dispatch", "graph",
           "--dump-cuda-graph", file});
  if (result.code == 5) {
    EXPECT_EQ(result.err, "trainer: device gpu: built without CUDA\n");
    return;
  }
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("cuda fused, math fp32"));
  // A kernel's grid, block, cluster, shared bytes and registers.
  EXPECT_THAT(result.out,
              testing::ContainsRegex("forward +HiddenSplitForwardKernel<[0-9]>"
                                     " +[0-9x]+ +[0-9]+ +1 +[0-9]+ +[0-9]+"));
  std::ifstream in(file);
  const std::string dot((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(dot, AllOf(StartsWith("digraph step {"), HasSubstr("n0 -> n1"),
                         HasSubstr(" registers")));
}

TEST_F(E2eVerbsTest, AMissingGpuIsUnavailable) {
  if (Run({"probe"}).code == 0) GTEST_SKIP() << "there is a GPU";
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"probe"},
        {"bench", "--device", "gpu", "--model", "20-16-4"},
        {"train", "--device", "gpu"},
        {"train", "--device", "gpu", "--dispatch", "ops", "--fuse", "off"}}) {
    const CliResult result = Run(args);
    EXPECT_EQ(result.code, 5) << args[0];
    EXPECT_THAT(result.err, StartsWith("trainer: device gpu: ")) << args[0];
  }
}

TEST_F(E2eVerbsTest, BenchSaysThatTheLossesAgreeAndTimesThreeWays) {
  const CliResult result = Run({"bench", "--model", "20-16-4", "--batch", "8",
                                "--samples", "3", "--threads", "1"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("losses of the first 20 steps agree"),
                    HasSubstr("      8 unfused "), HasSubstr(" loops "),
                    HasSubstr(" fused "), HasSubstr("peak ")));
}

TEST_F(E2eVerbsTest, BenchPrintsJson) {
  const CliResult result = Run({"bench", "--model", "20-16-4", "--batch", "8,5",
                                "--samples", "3", "--threads", "1", "--json"});
  EXPECT_EQ(result.code, 0);
  const json bench = json::parse(result.out);
  EXPECT_EQ(bench.at("threads"), 1);
  EXPECT_GT(bench.at("peak_gflops"), 0);
  ASSERT_EQ(bench.at("rows").size(), 2u);
  EXPECT_EQ(bench["rows"][1].at("batch"), 5);
  EXPECT_GT(bench["rows"][0].at("single_ratio"), 0);
}

TEST_F(E2eVerbsTest, BenchComparesFusedWithUnfusedAndTakesNoFuse) {
  EXPECT_EQ(Run({"bench", "--fuse", "off"}).code, 2);
}

TEST_F(E2eVerbsTest, APathThatIsNoUtf8CostsNoResult) {
  WriteData("d\xff", 100, 10);
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{
           {"train", "--epochs=1", "--out=out", "--trace=trace.json"},
           {"profile", "--model=64-8-10"}}) {
    std::vector<std::string> args = verb;
    args.insert(args.end(), {"--data", Path("d\xff"), "--threads=1", "--json"});
    const CliResult result = Run(args);
    EXPECT_EQ(result.code, 0) << verb[0] << ": " << result.err;
    EXPECT_THAT(result.out, HasSubstr("/d\uFFFD")) << verb[0];
  }
}

TEST_F(E2eVerbsTest, TeamsSpinBrieflyUnlessToldHowToWait) {
  const auto info = [this](const char* name) {
    unsetenv("OMP_WAIT_POLICY");  // as ctest sets it
    unsetenv("GOMP_SPINCOUNT");
    if (name != nullptr) setenv(name, "77", 1);
    return Run({"info"}).out;
  };
  EXPECT_THAT(info(nullptr), testing::ContainsRegex("GOMP_SPINCOUNT +2000"));
  EXPECT_THAT(info("GOMP_SPINCOUNT"),
              testing::ContainsRegex("GOMP_SPINCOUNT +77"));
  unsetenv("GOMP_SPINCOUNT");
  setenv("OMP_WAIT_POLICY", "passive", 1);
}

TEST_F(E2eVerbsTest, InfoNamesMachineLibrariesAndDevices) {
  const CliResult text = Run({"info"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("\n  isa "), HasSubstr("\n  oneDNN "),
                    HasSubstr("\ngpus "), HasSubstr("\ncore_latency ")));
  const json info = json::parse(Run({"info", "--json"}).out);
  EXPECT_GE(info.at("cpu").at("default_threads"), 1);
  EXPECT_GE(info["cpu"].at("physical_cores"), 1);
  EXPECT_TRUE(info.at("libraries").contains("oneDNN"));
  EXPECT_EQ(info.at("gpus").empty(), info.contains("no_gpu_because"));
  EXPECT_EQ(info.at("core_latency").is_null(),
            info["cpu"].at("affinity_cpus") < 2);
}

TEST_F(E2eVerbsTest, ProbeMeasuresTheGpuOrSaysWhyThereIsNone) {
  const CliResult result = Run({"probe", "--json"});
  if (result.code == 0) {
    EXPECT_FALSE(json::parse(result.out).at("rows").empty());
    return;
  }
  EXPECT_EQ(result.code, 5);
  EXPECT_THAT(result.err, HasSubstr("device gpu: "));
}

}  // namespace
}  // namespace onestep
