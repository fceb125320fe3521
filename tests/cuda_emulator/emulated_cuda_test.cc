// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/emulated_cuda.h"

#include <cmath>
#include <set>
#include <string>

#include "tests/cuda_emulator/emulated_cuda_fixture.h"
#include "tests/cuda_emulator/test_kernels.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- memory ----------------------------------------------------------------

TEST_F(EmulatedCudaTest, MemoryIsAlignedAndNotANumber) {
  for (const bool pinned : {false, true}) {
    ASSERT_OK_AND_ASSIGN(void* memory,
                         pinned ? cuda.MallocHost(12) : cuda.Malloc(12));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(std::isnan(static_cast<float*>(memory)[i]));
    }
    pinned ? cuda.FreeHost(memory) : cuda.Free(memory);
  }
  EXPECT_THAT(cuda.errors(), IsEmpty());
}

#ifdef __SANITIZE_ADDRESS__
TEST_F(EmulatedCudaTest, MemoryEndsAtTheLastByte) {
  auto* memory = static_cast<volatile char*>(cuda.Malloc(13).value());
  memory[12] = 1;
  EXPECT_DEATH(memory[13] = 1, "heap-buffer-overflow");
  cuda.Free(const_cast<char*>(memory));
}
#endif

TEST(EmulatedCudaMemoryTest, MallocBeyondTheDeviceIsExhausted) {
  EmulatedCudaOptions options;
  options.device.memory_bytes = 1000;
  EmulatedCuda cuda(options);
  ASSERT_OK_AND_ASSIGN(void* memory, cuda.Malloc(600));
  EXPECT_THAT(cuda.Malloc(401),
              StatusIs(StatusCode::kResourceExhausted,
                       "cudaMalloc of 401 bytes: out of memory (2), 400 "
                       "free"));
  ASSERT_OK(cuda.MallocHost(5000));
  EXPECT_EQ(cuda.FreeMemory().value(), 400);
  cuda.Free(memory);
  EXPECT_EQ(cuda.FreeMemory().value(), 1000);
}

TEST_F(EmulatedCudaTest, FreeOfWhatIsNotAllocatedIsAnError) {
  float* const x = Device(4, 0);
  cuda.Free(nullptr);
  cuda.FreeHost(x);
  cuda.Free(x + 1);
  EXPECT_THAT(cuda.LiveObjects(), HasSubstr("1 device allocation"));
  cuda.Free(x);
  EXPECT_EQ(cuda.errors().size(), 2u);
  cuda.Free(x);
  ASSERT_EQ(cuda.errors().size(), 3u);
  EXPECT_THAT(cuda.errors()[0], HasSubstr("FreeHost of "));
  EXPECT_THAT(cuda.errors()[2], HasSubstr(", which it did not allocate"));
}

TEST_F(EmulatedCudaTest, CopiesCheckBothRanges) {
  float* const x = Device(4, 0);
  float* const pinned = PinnedFloats(cuda, 4, 0);
  float host[8] = {};
  const auto is_not = [](const char* what) {
    return StatusIs(StatusCode::kInternal, HasSubstr(what));
  };
  EXPECT_OK(cuda.CopyToDevice(x + 1, host, 12, stream));
  EXPECT_THAT(cuda.CopyToDevice(x + 1, host, 16, stream),
              is_not("(1): 16 bytes at"));
  EXPECT_THAT(cuda.CopyToDevice(host, host + 4, 16, stream),
              is_not("are not device memory"));
  EXPECT_THAT(cuda.CopyToDevice(pinned, host, 16, stream),
              is_not("are not device memory"));
  EXPECT_THAT(cuda.CopyToDevice(x, x, 16, stream), is_not("not host memory"));
  EXPECT_THAT(cuda.CopyToHost(pinned + 1, x, 16, stream),
              is_not("are not host memory"));
  EXPECT_THAT(cuda.CopyToHost(pinned, x, -1, stream), is_not("-1 bytes"));
  EXPECT_THAT(cuda.Memset(x, 0, 17, stream), is_not("17 bytes at"));
  EXPECT_THAT(cuda.Memset(x, 0, 16, nullptr), is_not("not a stream"));
}

TEST_F(EmulatedCudaTest, LiveObjectsNamesWhatIsLeft) {
  Device(64, 0);
  Device(1, 0);
  PinnedFloats(cuda, 2, 0);
  ASSERT_OK(cuda.CreateEvent());
  ASSERT_OK(cuda.CreateEvent());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK(cuda.Instantiate(graph, stream));
  ASSERT_OK(cuda.PlanMatMul({.m = 1, .n = 1, .k = 1}, nullptr, 0, stream));
  EXPECT_EQ(cuda.LiveObjects(),
            "2 device allocations (260 bytes), 1 pinned allocation (8 bytes), "
            "1 stream, 2 events, 1 graph, 1 exec, 1 matmul plan");
}

// ---- streams ---------------------------------------------------------------

TEST_F(EmulatedCudaTest, WorkRunsWhenItMust) {
  float* const x = Device(40, 1);
  ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 2, 40), stream));
  ASSERT_OK(cuda.LaunchKernel(ScaleLaunch(x, 10, 40), stream));
  EXPECT_EQ(x[0], 1);
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(x[0], 30);
  EXPECT_EQ(x[39], 30);
  ASSERT_OK(cuda.Memset(x, 0, 8, stream));
  EXPECT_EQ(x[1], 30);
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_THAT(std::vector<float>(x, x + 3), ElementsAre(0, 0, 30));
}

TEST_F(EmulatedCudaTest, DoneRunsSomeAndGetsThere) {
  float* const x = Device(1, 0);
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 1, 1), stream));
  }
  std::set<float> seen;
  int polls = 0;
  for (bool done = false; !done; ++polls) {
    ASSERT_LT(polls, 1000);
    ASSERT_OK_AND_ASSIGN(done, cuda.Done(stream));
    seen.insert(*x);
  }
  EXPECT_EQ(*x, 100);
  EXPECT_GT(seen.size(), 2u);
}

TEST_F(EmulatedCudaTest, PinnedMemoryIsReadWhenTheCopyRuns) {
  float* const x = Device(1, 0);
  float* const staging = PinnedFloats(cuda, 1, 5);
  ASSERT_OK(cuda.CopyToDevice(x, staging, 4, stream));
  *staging = 6;
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(*x, 6);
}

TEST_F(EmulatedCudaTest, PageableMemoryIsReadAtTheCall) {
  float* const x = Device(1, 0);
  float host = 5;
  ASSERT_OK(cuda.CopyToDevice(x, &host, 4, stream));
  host = 6;
  EXPECT_EQ(*x, 0);
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(*x, 5);
}

TEST_F(EmulatedCudaTest, OnlyCopiesToPageableMemoryWait) {
  float* const x = Device(1, 7);
  float* const pinned = PinnedFloats(cuda, 1, 0);
  float host = 0;
  ASSERT_OK(cuda.CopyToHost(pinned, x, 4, stream));
  EXPECT_EQ(*pinned, 0);
  ASSERT_OK(cuda.CopyToHost(&host, x, 4, stream));
  EXPECT_EQ(*pinned, 7);
  EXPECT_EQ(host, 7);
}

// What a kernel on one stream sees of a copy on another.
float SeenByTheOtherStream(uint64_t seed, bool wait) {
  EmulatedCudaOptions options;
  options.seed = seed;
  EmulatedCuda cuda(options);
  const CudaApi::Stream copies = cuda.CreateStream().value();
  const CudaApi::Stream compute = cuda.CreateStream().value();
  const CudaApi::Event copied = cuda.CreateEvent().value();
  float* const x = DeviceFloats(cuda, 1, 1);
  float* const y = DeviceFloats(cuda, 1, 0);
  float* const staging = PinnedFloats(cuda, 1, 2);
  EXPECT_OK(cuda.CopyToDevice(x, staging, 4, copies));
  EXPECT_OK(cuda.Record(copied, copies));
  if (wait) {
    EXPECT_OK(cuda.Wait(compute, copied));
  }
  EXPECT_OK(cuda.LaunchKernel(CopyLaunch(x, y, 1), compute));
  EXPECT_OK(cuda.Synchronize(compute));
  return *y;
}

TEST(EmulatedCudaStreamsTest, AMissingWaitShowsForSomeSeeds) {
  std::set<float> with_wait, without;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    with_wait.insert(SeenByTheOtherStream(seed, true));
    without.insert(SeenByTheOtherStream(seed, false));
  }
  EXPECT_THAT(with_wait, ElementsAre(2));
  EXPECT_THAT(without, ElementsAre(1, 2));
}

TEST(EmulatedCudaStreamsTest, OtherStreamsRunInFullInPartOrNotAtAll) {
  std::set<float> seen;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    EmulatedCudaOptions options;
    options.seed = seed;
    EmulatedCuda cuda(options);
    const CudaApi::Stream stream = cuda.CreateStream().value();
    const CudaApi::Stream other = cuda.CreateStream().value();
    float* const x = DeviceFloats(cuda, 2, 0);
    for (int i = 0; i < 40; ++i) {
      ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 1, 1), other));
    }
    ASSERT_OK(cuda.LaunchKernel(AddLaunch(x + 1, 1, 1), stream));
    ASSERT_OK(cuda.LaunchKernel(AddLaunch(x + 1, 1, 1), stream));
    ASSERT_OK(cuda.Synchronize(stream));
    seen.insert(x[0]);
  }
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 40);
  EXPECT_GT(seen.size(), 2u);
}

TEST_F(EmulatedCudaTest, WaitIsForTheLastRecordBeforeIt) {
  ASSERT_OK_AND_ASSIGN(const CudaApi::Stream other, cuda.CreateStream());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Event event, cuda.CreateEvent());
  float* const x = Device(1, 1);
  ASSERT_OK(cuda.Wait(other, event));  // of nothing
  ASSERT_OK(cuda.Synchronize(other));
  for (const float value : {1, 2}) {
    ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, value, 1), stream));
    ASSERT_OK(cuda.Record(event, stream));
  }
  ASSERT_OK(cuda.Wait(other, event));
  ASSERT_OK(cuda.Synchronize(other));
  EXPECT_EQ(*x, 4);
}

TEST_F(EmulatedCudaTest, ElapsedCountsTheWorkBetween) {
  ASSERT_OK_AND_ASSIGN(const CudaApi::Event from, cuda.CreateEvent());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Event to, cuda.CreateEvent());
  EXPECT_THAT(cuda.Elapsed(from, to),
              StatusIs(StatusCode::kInternal, HasSubstr("(400)")));
  ASSERT_OK(cuda.Record(from, stream));
  float* const x = Device(1, 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 1, 1), stream));
  }
  ASSERT_OK(cuda.Record(to, stream));
  EXPECT_THAT(cuda.Elapsed(from, to),
              StatusIs(StatusCode::kInternal, HasSubstr("not ready (600)")));
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_FLOAT_EQ(cuda.Elapsed(from, to).value(), 0.004f);
}

TEST_F(EmulatedCudaTest, DestroyingWhatQueuedWorkNeedsIsAnError) {
  ASSERT_OK_AND_ASSIGN(const CudaApi::Event event, cuda.CreateEvent());
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.CreateGraph());
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  float* const x = Device(8, 0);
  float* const unused = Device(1, 0);
  float y = 0;
  ASSERT_OK(cuda.Record(event, stream));
  ASSERT_OK(cuda.LaunchGraph(exec, stream));
  ASSERT_OK(cuda.LaunchKernel(AddLaunch(x + 4, 1, 2), stream));
  cuda.DestroyEvent(event);
  cuda.DestroyGraphExec(exec);
  cuda.DestroyGraph(graph);
  cuda.Free(unused);
  cuda.Free(x);
  ASSERT_OK(cuda.CopyToDevice(Device(1, 0), &y, 4, stream));
  cuda.DestroyStream(stream);
  EXPECT_THAT(
      cuda.errors(),
      ElementsAre("DestroyEvent of an event that queued work needs",
                  "DestroyGraphExec of an exec with queued launches",
                  HasSubstr("which the kernel Elementwise<Op::kAdd,false> "
                            "queued on stream 1 uses"),
                  "DestroyStream of stream 1 with work queued"));
}

TEST_F(EmulatedCudaTest, NothingIsDestroyedTwice) {
  ASSERT_OK_AND_ASSIGN(const CudaApi::Event event, cuda.CreateEvent());
  cuda.DestroyEvent(event);
  cuda.DestroyStream(stream);
  EXPECT_THAT(cuda.errors(), IsEmpty());
  EXPECT_EQ(cuda.LiveObjects(), "");
  cuda.DestroyEvent(event);
  cuda.DestroyStream(stream);
  cuda.DestroyGraph(nullptr);
  cuda.DestroyGraphExec(nullptr);
  cuda.DestroyMatMulPlan(nullptr);
  EXPECT_EQ(cuda.errors().size(), 5u);
  EXPECT_THAT(cuda.Synchronize(stream),
              StatusIs(StatusCode::kInternal, HasSubstr("(400)")));
}

// ---- kernels ---------------------------------------------------------------

TEST_F(EmulatedCudaTest, TheFirstLaunchLoadsTheKernel) {
  float* const x = Device(1, 0);
  cuda.log().Mark();
  ASSERT_OK(cuda.Preload(AddLaunch(x, 1, 1)));
  ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 2, 1), stream));
  EXPECT_EQ(cuda.log().Count("LazyLoad"), 0);
  ASSERT_OK(cuda.LaunchKernel(ScaleLaunch(x, 2, 1), stream));
  ASSERT_OK(cuda.LaunchKernel(ScaleLaunch(x, 2, 1), stream));
  EXPECT_EQ(cuda.log().Counts(), "LaunchKernel 3, LazyLoad 1, Preload 1");
}

TEST_F(EmulatedCudaTest, PreloadAllowsSharedMemoryAndClusters) {
  Launch launch = AddLaunch(Device(1, 0), 1, 1);
  launch.shared_bytes = 49153;
  EXPECT_THAT(cuda.LaunchKernel(launch, stream),
              StatusIs(StatusCode::kInternal,
                       HasSubstr("49153 bytes of shared memory, 49152 "
                                 "allowed")));
  ASSERT_OK(cuda.Preload(launch));
  EXPECT_OK(cuda.LaunchKernel(launch, stream));
  launch.cluster = launch.grid.x = 16;
  EXPECT_THAT(
      cuda.LaunchKernel(launch, stream),
      StatusIs(StatusCode::kInternal, HasSubstr("clusters of 16, 8 allowed")));
  ASSERT_OK(cuda.Preload(launch));
  EXPECT_OK(cuda.LaunchKernel(launch, stream));
  launch.shared_bytes = 232449;
  EXPECT_THAT(cuda.Preload(launch),
              StatusIs(StatusCode::kInternal,
                       HasSubstr("232449 bytes of shared memory, 232448")));
}

TEST_F(EmulatedCudaTest, RefusesImpossibleLaunches) {
  const Launch good = AddLaunch(Device(1, 0), 1, 1);
  const auto answer = [&](auto change) {
    Launch launch = good;
    change(launch);
    return cuda.LaunchKernel(launch, stream);
  };
  const auto is = [](const char* text) {
    return StatusIs(StatusCode::kInternal, HasSubstr(text));
  };
  EXPECT_THAT(answer([](Launch& l) { l.block.x = 1025; }), is("(9)"));
  EXPECT_THAT(answer([](Launch& l) { l.grid.x = 0; }), is("(9)"));
  EXPECT_THAT(answer([](Launch& l) { l.kernel = nullptr; }), is("no kernel"));
  EXPECT_THAT(answer([](Launch& l) { l.cluster = 2; }),
              is("clusters of 2 in a grid of 1, sm_90"));
  EXPECT_OK(answer([](Launch&) {}));
}

TEST(EmulatedCudaKernelsTest, MaxActiveClustersIsSettable) {
  Launch launch = TrapLaunch();
  launch.grid.x = launch.cluster = 8;
  EXPECT_EQ(EmulatedCuda().MaxActiveClusters(launch).value(), 132 / 8);
  EmulatedCudaOptions options;
  options.max_active_clusters = [](const Launch& l) { return l.cluster - 8; };
  EXPECT_EQ(EmulatedCuda(options).MaxActiveClusters(launch).value(), 0);
}

// ---- failures --------------------------------------------------------------

TEST_F(EmulatedCudaTest, FailsTheNthCall) {
  cuda.FailAt("Device", 2, absl::UnavailableError("no driver"));
  cuda.FailAt("Malloc", 1, kCudaOutOfMemory);
  cuda.FailAt("Malloc", 3, kCudaInvalidValue);
  cuda.FailAt("CreateEvent", 1, kCudaNoDevice);
  EXPECT_OK(cuda.Device());
  EXPECT_THAT(cuda.Device(), StatusIs(StatusCode::kUnavailable, "no driver"));
  EXPECT_OK(cuda.Device());
  EXPECT_THAT(cuda.Malloc(8),
              StatusIs(StatusCode::kResourceExhausted,
                       "cudaMalloc: out of memory (2): injected"));
  EXPECT_OK(cuda.Malloc(8));
  EXPECT_THAT(cuda.Malloc(8),
              StatusIs(StatusCode::kInternal, HasSubstr("(1): injected")));
  EXPECT_THAT(cuda.CreateEvent(),
              StatusIs(StatusCode::kUnavailable, HasSubstr("(100)")));
  EXPECT_EQ(cuda.Device()->name, "Emulated H200");
}

TEST_F(EmulatedCudaTest, ALaunchFailureStays) {
  float* const x = Device(1, 0);
  cuda.FailAt("LaunchKernel", 2, kCudaLaunchFailure);
  ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 1, 1), stream));
  const auto failed = StatusIs(StatusCode::kInternal,
                               HasSubstr("unspecified launch failure (719)"));
  EXPECT_THAT(cuda.LaunchKernel(AddLaunch(x, 1, 1), stream), failed);
  EXPECT_THAT(cuda.Synchronize(stream), failed);
  EXPECT_THAT(cuda.Malloc(4), failed);
  EXPECT_EQ(*x, 0);
  cuda.Free(x);
  cuda.DestroyStream(stream);
  EXPECT_THAT(cuda.errors(), IsEmpty());
  EXPECT_EQ(cuda.LiveObjects(), "");
}

TEST_F(EmulatedCudaTest, AnErrorOfRunningWorkComesOutLater) {
  float* const x = Device(1, 0);
  ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 1, 1), stream));
  ASSERT_OK(cuda.LaunchKernel(TrapLaunch(), stream));
  ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 1, 1), stream));
  EXPECT_THAT(cuda.Synchronize(stream),
              StatusIs(StatusCode::kInternal,
                       HasSubstr("cudaStreamSynchronize: unspecified launch "
                                 "failure (719): ")));
  EXPECT_EQ(*x, 1);
  EXPECT_THAT(cuda.Done(stream),
              StatusIs(StatusCode::kInternal, HasSubstr("cudaStreamQuery: ")));
}

TEST_F(EmulatedCudaTest, FailsTheNthKernelThatRuns) {
  float* const x = Device(1, 0);
  cuda.FailAt("RunKernel", 2, kCudaIllegalAddress);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 1, 1), stream));
  }
  EXPECT_THAT(cuda.Synchronize(stream),
              StatusIs(StatusCode::kInternal,
                       HasSubstr("an illegal memory access was encountered "
                                 "(700)")));
  EXPECT_EQ(*x, 1);
}

// ---- log -------------------------------------------------------------------

TEST_F(EmulatedCudaTest, LogTellsTheCallsSinceTheMark) {
  float* const x = Device(1, 0);
  ASSERT_OK(cuda.Preload(AddLaunch(x, 1, 1)));
  cuda.log().Mark();
  EXPECT_EQ(cuda.log().Counts(), "");
  ASSERT_OK(cuda.LaunchKernel(AddLaunch(x, 1, 1), stream));
  ASSERT_OK(cuda.Memset(x, 0, 4, stream));
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(cuda.log().Counts(), "LaunchKernel 1, Memset 1, Synchronize 1");
  EXPECT_EQ(cuda.log().Count("Synchronize"), 1);
  EXPECT_EQ(cuda.log().Count("Malloc"), 0);
  EXPECT_EQ(cuda.log().ToString(),
            "LaunchKernel Elementwise<Op::kAdd,false> on stream 1\n"
            "Memset 4 bytes on stream 1\n"
            "Synchronize on stream 1\n");
}

}  // namespace
}  // namespace onestep
