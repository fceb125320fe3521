// SPDX-License-Identifier: Apache-2.0
// The probe against CUDA in the emulator: that its kernels do what is timed,
// and that each measurement is a row. The times mean nothing there.
#include "runtime/cuda/cuda_probe.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

CudaProbeOptions Small() {
  CudaProbeOptions options;
  options.chains = {1, 8};
  options.samples = 3;
  options.rounds = 5;
  options.launches = 8;
  options.copy_bytes = 4096;
  options.matmul = 8;
  return options;
}

EmulatedCudaOptions SmallDevice() {
  EmulatedCudaOptions options;
  options.device.multiprocessors = 4;
  options.max_active_clusters = [](const Launch&) { return 1; };
  return options;
}

std::vector<std::string> Names(const CudaProbe& probe) {
  std::vector<std::string> names;
  for (const CudaProbeRow& row : probe.rows) names.push_back(row.name);
  return names;
}

TEST(CudaProbeTest, EveryMeasurementIsARow) {
  EmulatedCuda cuda(SmallDevice());
  ASSERT_OK_AND_ASSIGN(const CudaProbe probe, RunCudaProbe(cuda, Small()));
  EXPECT_EQ(probe.device.multiprocessors, 4);
  const std::vector<std::string> names = Names(probe);
  for (const char* name :
       {"graph node, chain of 8", "graph node, chain of 8, programmatic edges",
        "CPU time of a graph launch, chain of 8",
        "iteration of a WHILE node of one kernel",
        "kernel launched on a stream, back to back",
        "CPU time of a kernel launch", "barrier of 4 blocks",
        "barrier of a cluster of 8", "barrier of a cluster of 16",
        "push to another block's shared memory, a hop",
        "flag from block to block through L2, a hop", "copy to the device",
        "copy to the host", "device memory, read and written",
        "matmul 8x8x8 fp32", "matmul 8x8x8 tf32", "matmul 8x8x8 bf16"}) {
    EXPECT_THAT(names, Contains(std::string(name)));
  }
}

TEST(CudaProbeTest, AClusterThatDoesNotFitIsARowWithTheReason) {
  EmulatedCudaOptions options = SmallDevice();
  options.max_active_clusters = [](const Launch& launch) {
    return launch.cluster > 8 ? 0 : 1;
  };
  EmulatedCuda cuda(options);
  ASSERT_OK_AND_ASSIGN(const CudaProbe probe, RunCudaProbe(cuda, Small()));
  for (const CudaProbeRow& row : probe.rows) {
    if (row.name != "barrier of a cluster of 16") continue;
    EXPECT_EQ(row.value, 0);
    EXPECT_THAT(row.doubt, HasSubstr("no such cluster fits"));
    return;
  }
  ADD_FAILURE() << "no row of the cluster of 16";
}

TEST(CudaProbeTest, AnOlderDeviceHasNoClusters) {
  EmulatedCudaOptions options = SmallDevice();
  options.device.compute_major = 8;
  EmulatedCuda cuda(options);
  ASSERT_OK_AND_ASSIGN(const CudaProbe probe, RunCudaProbe(cuda, Small()));
  EXPECT_THAT(Names(probe), Not(Contains(StartsWith("push to"))));
  EXPECT_THAT(Names(probe), Contains("clusters of blocks"));
}

}  // namespace
}  // namespace onestep
