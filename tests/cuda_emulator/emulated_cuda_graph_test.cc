// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/cuda_emulator/emulated_cuda_fixture.h"
#include "tests/cuda_emulator/test_kernels.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using EmulatedGraphTest = EmulatedCudaTest;

testing::Matcher<absl::Status> InternalWith(const std::string& text) {
  return StatusIs(StatusCode::kInternal, HasSubstr(text));
}

// (1 + 2) * 10 on a graph of two nodes, with or without the edge between them.
float AddThenScale(uint64_t seed, bool edge) {
  EmulatedCudaOptions options;
  options.seed = seed;
  EmulatedCuda cuda(options);
  const CudaApi::Stream stream = cuda.CreateStream().value();
  const CudaApi::Graph graph = cuda.CreateGraph().value();
  float* const x = DeviceFloats(cuda, 1, 1);
  const CudaApi::Node add =
      cuda.AddKernel(graph, {}, AddLaunch(x, 2, 1)).value();
  std::vector<CudaApi::Edge> edges;
  if (edge) edges.push_back({add});
  EXPECT_OK(cuda.AddKernel(graph, edges, ScaleLaunch(x, 10, 1)).status());
  const CudaApi::GraphExec exec = cuda.Instantiate(graph, stream).value();
  EXPECT_OK(cuda.LaunchGraph(exec, stream));
  EXPECT_OK(cuda.Synchronize(stream));
  return *x;
}

TEST(EmulatedGraphOrderTest, OnlyEdgesOrderNodes) {
  std::set<float> with_edge, without;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    with_edge.insert(AddThenScale(seed, true));
    without.insert(AddThenScale(seed, false));
  }
  EXPECT_THAT(with_edge, ElementsAre(30));
  EXPECT_THAT(without, ElementsAre(12, 30));
}

TEST_F(EmulatedGraphTest, ALaunchQueuesTheWholeGraph) {
  float* const x = Device(1, 0);
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK(cuda.AddKernel(graph, {}, AddLaunch(x, 1, 1)).status());
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  cuda.DestroyGraph(graph);
  cuda.log().Mark();
  for (int i = 0; i < 3; ++i) ASSERT_OK(cuda.LaunchGraph(exec, stream));
  EXPECT_EQ(*x, 0);
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(*x, 3);
  EXPECT_EQ(cuda.log().Counts(), "LaunchGraph 3, Synchronize 1");
  EXPECT_THAT(cuda.log().ToString(),
              HasSubstr("LaunchGraph of 1 nodes on stream 1\n"));
  cuda.DestroyGraphExec(exec);
  EXPECT_THAT(cuda.LaunchGraph(exec, stream), InternalWith("not an exec"));
  EXPECT_THAT(cuda.errors(), IsEmpty());
}

TEST_F(EmulatedGraphTest, AnExecIsTheGraphAsItWas) {
  float* const x = Device(1, 0);
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK(cuda.AddKernel(graph, {}, AddLaunch(x, 1, 1)));
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  ASSERT_OK(cuda.AddKernel(graph, {}, AddLaunch(x, 10, 1)));
  ASSERT_OK(cuda.LaunchGraph(exec, stream));
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(*x, 1);
}

TEST(EmulatedGraphOrderTest, LaunchesOfOneExecDoNotMix) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EmulatedCudaOptions options;
    options.seed = seed;
    EmulatedCuda cuda(options);
    const CudaApi::Stream stream = cuda.CreateStream().value();
    const CudaApi::Stream other = cuda.CreateStream().value();
    float* const x = DeviceFloats(cuda, 1, 1);
    const CudaApi::Graph graph = cuda.CreateGraph().value();
    ASSERT_OK_AND_ASSIGN(const CudaApi::Node add,
                         cuda.AddKernel(graph, {}, AddLaunch(x, 2, 1)));
    ASSERT_OK(cuda.AddKernel(graph, {{add}}, ScaleLaunch(x, 10, 1)));
    ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                         cuda.Instantiate(graph, stream));
    ASSERT_OK(cuda.LaunchGraph(exec, stream));
    ASSERT_OK(cuda.LaunchGraph(exec, other));
    ASSERT_OK(cuda.Synchronize(other));
    ASSERT_EQ(*x, 320) << "seed " << seed;
  }
}

TEST(EmulatedGraphOrderTest, ANodeRunsAfterAllItsEdges) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EmulatedCudaOptions options;
    options.seed = seed;
    EmulatedCuda cuda(options);
    const CudaApi::Stream stream = cuda.CreateStream().value();
    float* const x = DeviceFloats(cuda, 2, 1);
    const CudaApi::Graph graph = cuda.CreateGraph().value();
    ASSERT_OK_AND_ASSIGN(const CudaApi::Node first,
                         cuda.AddKernel(graph, {}, AddLaunch(x, 2, 1)));
    ASSERT_OK_AND_ASSIGN(const CudaApi::Node second,
                         cuda.AddKernel(graph, {}, AddLaunch(x + 1, 3, 1)));
    ASSERT_OK(
        cuda.AddKernel(graph, {{first}, {second}}, ScaleLaunch(x, 10, 2)));
    ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                         cuda.Instantiate(graph, stream));
    ASSERT_OK(cuda.LaunchGraph(exec, stream));
    ASSERT_OK(cuda.Synchronize(stream));
    ASSERT_THAT(std::vector<float>(x, x + 2), ElementsAre(30, 40));
  }
}

TEST_F(EmulatedGraphTest, AChildGraphIsCopied) {
  float* const x = Device(1, 1);
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph child, cuda.CreateGraph());
  ASSERT_OK(cuda.AddKernel(child, {}, AddLaunch(x, 2, 1)).status());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Node node,
                       cuda.AddChildGraph(graph, {}, child));
  ASSERT_OK(cuda.AddKernel(graph, {{node}}, ScaleLaunch(x, 10, 1)).status());
  ASSERT_OK(cuda.AddKernel(child, {}, AddLaunch(x, 100, 1)).status());
  cuda.DestroyGraph(child);
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  ASSERT_OK(cuda.LaunchGraph(exec, stream));
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(*x, 30);
}

TEST_F(EmulatedGraphTest, EdgesAreChecked) {
  float* const x = Device(1, 1);
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph other, cuda.CreateGraph());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Node kernel,
                       cuda.AddKernel(graph, {}, AddLaunch(x, 1, 1)));
  ASSERT_OK_AND_ASSIGN(const CudaApi::Node child,
                       cuda.AddChildGraph(graph, {{kernel}}, other));
  EXPECT_THAT(cuda.AddKernel(other, {{kernel}}, AddLaunch(x, 1, 1)).status(),
              InternalWith("an edge from another graph"));
  EXPECT_THAT(
      cuda.AddKernel(graph, {{kernel}, {kernel}}, AddLaunch(x, 1, 1)).status(),
      InternalWith("two edges from one node"));
  // Programmatic: between kernels, the later of which waits.
  const CudaApi::Edge after_kernel{kernel, true}, after_child{child, true};
  const Launch waiting = WaitingAddLaunch(x, 1, 1);
  EXPECT_OK(cuda.AddKernel(graph, {after_kernel}, waiting));
  EXPECT_THAT(
      cuda.AddKernel(graph, {after_kernel}, AddLaunch(x, 1, 1)).status(),
      InternalWith("must be a kernel that waits"));
  EXPECT_THAT(cuda.AddKernel(graph, {after_child}, waiting).status(),
              InternalWith("programmatic edge from child graph"));
  EXPECT_THAT(cuda.AddChildGraph(graph, {after_kernel}, other).status(),
              InternalWith("to child graph , which must be"));
}

TEST_F(EmulatedGraphTest, NodesAndDotShowWhatWasAdded) {
  float* const x = Device(1, 1);
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Node first,
                       cuda.AddKernel(graph, {}, AddLaunch(x, 1, 1)));
  ASSERT_OK_AND_ASSIGN(
      const CudaApi::Node second,
      cuda.AddKernel(graph, {{first, true}}, WaitingAddLaunch(x, 1, 1)));
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph child, cuda.CreateGraph());
  ASSERT_OK(cuda.AddKernel(child, {}, TrapLaunch()).status());
  ASSERT_OK(cuda.AddChildGraph(graph, {{first}, {second}}, child).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<CudaApi::NodeInfo> nodes,
                       cuda.Nodes(graph));
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].kind, "kernel");
  EXPECT_EQ(nodes[0].name, "Elementwise<Op::kAdd,false>");
  EXPECT_EQ(nodes[2].kind, "child graph");
  const std::string path = testing::TempDir() + "/emulated_graph.dot";
  ASSERT_OK(cuda.WriteDot(graph, path));
  std::stringstream dot;
  dot << std::ifstream(path).rdbuf();
  EXPECT_EQ(dot.str(),
            "digraph {\n"
            "  n0 [label=\"kernel Elementwise<Op::kAdd,false>\"];\n"
            "  n1 [label=\"kernel Elementwise<Op::kAdd,true>\"];\n"
            "  n0 -> n1 [style=dashed];\n"
            "  n2 [label=\"child graph\"];\n"
            "  n0 -> n2;\n"
            "  n1 -> n2;\n"
            "  subgraph cluster_n2 {\n"
            "  n2_0 [label=\"kernel JustTrap<0>\"];\n"
            "  }\n"
            "}\n");
  EXPECT_THAT(cuda.WriteDot(graph, "/no/such/folder"),
              InternalWith("/no/such/folder"));
}

TEST_F(EmulatedGraphTest, AFailureInAGraphStays) {
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK(cuda.AddKernel(graph, {}, TrapLaunch()).status());
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  ASSERT_OK(cuda.LaunchGraph(exec, stream));
  EXPECT_THAT(cuda.Synchronize(stream), InternalWith("(719)"));
  EXPECT_THAT(cuda.LaunchGraph(exec, stream),
              InternalWith("cudaGraphLaunch: unspecified launch failure"));
  cuda.DestroyGraphExec(exec);
  cuda.DestroyGraph(graph);
  EXPECT_THAT(cuda.errors(), IsEmpty());
}

// ---- capture ---------------------------------------------------------------

TEST_F(EmulatedGraphTest, CaptureGivesAChain) {
  float* const x = Device(1, 1);
  float* const staging = PinnedFloats(cuda, 1, 4);
  ASSERT_OK(cuda.Preload(AddLaunch(x, 1, 1)));
  ASSERT_OK_AND_ASSIGN(
      const CudaApi::MatMulPlan plan,
      cuda.PlanMatMul({.m = 1, .n = 1, .k = 1}, nullptr, 0, stream));
  float* const y = Device(1, 0);
  ASSERT_OK(cuda.BeginCapture(stream));
  ASSERT_OK(cuda.CopyToDevice(x, staging, 4, stream));
  ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 2, 1), stream));
  ASSERT_OK(cuda.RunMatMul(plan, {.a = x, .b = x, .y = y}, stream));
  ASSERT_OK(cuda.Memset(x, 0, 4, stream));
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.EndCapture(stream));
  ASSERT_OK_AND_ASSIGN(const std::vector<CudaApi::NodeInfo> nodes,
                       cuda.Nodes(graph));
  std::vector<std::string> kinds;
  for (const CudaApi::NodeInfo& node : nodes) kinds.push_back(node.kind);
  EXPECT_THAT(kinds, ElementsAre("memcpy", "kernel", "kernel", "memset"));
  EXPECT_EQ(nodes[2].name, "matmul 1x1x1");
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(*x, 1);
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  cuda.DestroyMatMulPlan(plan);
  ASSERT_OK(cuda.LaunchGraph(exec, stream));
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(*x, 0);
  EXPECT_EQ(*y, 36);
}

TEST_F(EmulatedGraphTest, ALaunchedGraphIsCapturedAsAChild) {
  float* const x = Device(1, 1);
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK(cuda.AddKernel(graph, {}, AddLaunch(x, 2, 1)).status());
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  ASSERT_OK(cuda.BeginCapture(stream));
  ASSERT_OK(cuda.LaunchGraph(exec, stream));
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph outer, cuda.EndCapture(stream));
  EXPECT_EQ(cuda.Nodes(outer)->front().kind, "child graph");
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec outer_exec,
                       cuda.Instantiate(outer, stream));
  ASSERT_OK(cuda.LaunchGraph(outer_exec, stream));
  ASSERT_OK(cuda.LaunchGraph(exec, stream));
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(*x, 5);
}

TEST_F(EmulatedGraphTest, WhatCannotBeCapturedInvalidates) {
  float* const x = Device(1, 1);
  float host = 0;
  ASSERT_OK_AND_ASSIGN(const CudaApi::Event event, cuda.CreateEvent());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Stream other, cuda.CreateStream());
  const std::pair<std::string, std::function<absl::Status()>> calls[] = {
      {"Synchronize", [&] { return cuda.Synchronize(stream); }},
      {"Synchronize other", [&] { return cuda.Synchronize(other); }},
      {"Done", [&] { return cuda.Done(stream).status(); }},
      {"Malloc", [&] { return cuda.Malloc(4).status(); }},
      {"MallocHost", [&] { return cuda.MallocHost(4).status(); }},
      {"CopyToHost", [&] { return cuda.CopyToHost(&host, x, 4, stream); }},
      {"CopyToDevice", [&] { return cuda.CopyToDevice(x, &host, 4, stream); }},
      {"Record", [&] { return cuda.Record(event, stream); }},
      {"Wait", [&] { return cuda.Wait(stream, event); }},
      {"Elapsed", [&] { return cuda.Elapsed(event, event).status(); }},
      {"Instantiate", [&] { return cuda.Instantiate(graph, stream).status(); }},
      {"LaunchKernel",
       [&] { return cuda.LaunchKernel(AddLaunch(x, 1, 1), stream); }},
      {"AddKernel",
       [&] { return cuda.AddKernel(graph, {}, AddLaunch(x, 1, 1)).status(); }},
      {"Preload", [&] { return cuda.Preload(AddLaunch(x, 1, 1)); }},
      {"PlanMatMul",
       [&] {
         return cuda.PlanMatMul({.m = 1, .n = 1, .k = 1}, nullptr, 0, stream)
             .status();
       }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    ASSERT_OK(cuda.BeginCapture(stream));
    EXPECT_OK(cuda.Memset(x, 0, 4, stream));
    EXPECT_THAT(call(),
                InternalWith("operation not permitted when stream is capturing "
                             "(900)"));
    EXPECT_THAT(cuda.Memset(x, 0, 4, stream), InternalWith("(901)"));
    EXPECT_THAT(cuda.EndCapture(stream),
                StatusIs(StatusCode::kInternal,
                         "cudaStreamEndCapture: operation failed due to a "
                         "previous error during capture (901)"));
  }
  ASSERT_OK(cuda.BeginCapture(stream));
  EXPECT_OK(cuda.EndCapture(stream));
}

TEST_F(EmulatedGraphTest, FreeWhileCapturingDoesNotFree) {
  float* const x = Device(1, 1);
  float* const pinned = PinnedFloats(cuda, 1, 0);
  for (const auto& free : {std::function([&] { cuda.Free(x); }),
                           std::function([&] { cuda.FreeHost(pinned); })}) {
    ASSERT_OK(cuda.BeginCapture(stream));
    free();
    EXPECT_THAT(cuda.EndCapture(stream).status(), InternalWith("(901)"));
  }
  EXPECT_THAT(cuda.errors(), ElementsAre("Free while a stream captures",
                                         "FreeHost while a stream captures"));
  EXPECT_THAT(cuda.LiveObjects(), HasSubstr("1 device allocation (4 bytes), "
                                            "1 pinned allocation (4 bytes)"));
}

TEST_F(EmulatedGraphTest, CapturesAndGraphsCanBeMadeToFail) {
  for (const int code : {kCudaCaptureUnsupported, kCudaCaptureInvalidated,
                         kCudaCaptureImplicit}) {
    cuda.FailAt("EndCapture", 1, code);
    ASSERT_OK(cuda.BeginCapture(stream));
    EXPECT_THAT(cuda.EndCapture(stream).status(),
                InternalWith("(" + std::to_string(code) + "): injected"));
    EXPECT_OK(cuda.Synchronize(stream));  // no longer captures
  }
  cuda.FailAt("Instantiate", 1, kCudaInvalidValue);
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  EXPECT_THAT(cuda.Instantiate(graph, stream).status(),
              InternalWith("cudaGraphInstantiate: invalid argument (1)"));
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  cuda.FailAt("LaunchGraph", 1, kCudaLaunchFailure);
  EXPECT_THAT(cuda.LaunchGraph(exec, stream), InternalWith("(719): injected"));
  EXPECT_THAT(cuda.Synchronize(stream), InternalWith("(719): injected"));
}

TEST_F(EmulatedGraphTest, BeginAndEndOfCaptureComeInPairs) {
  EXPECT_THAT(cuda.EndCapture(stream).status(), InternalWith("(401)"));
  ASSERT_OK(cuda.BeginCapture(stream));
  EXPECT_THAT(cuda.BeginCapture(stream), InternalWith("(401)"));
  cuda.DestroyStream(stream);
  EXPECT_THAT(cuda.errors(),
              ElementsAre("DestroyStream of a stream that captures"));
}

}  // namespace
}  // namespace onestep
