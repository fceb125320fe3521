// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_occupancy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "kernels/kernel_resources.h"
#include "kernels/launch.h"
#include "runtime/cuda/cuda_graph.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

using testing::Optional;

const CudaDevice kH200 = EmulatedCudaOptions().device;

Launch Of(uint32_t blocks, uint32_t threads, uint32_t shared_bytes = 0,
          uint32_t cluster = 1) {
  Launch launch;
  launch.grid.x = blocks;
  launch.block.x = threads;
  launch.shared_bytes = shared_bytes;
  launch.cluster = cluster;
  return launch;
}

KernelResources Registers(int registers) {
  KernelResources resources = {};
  resources.registers = registers;
  return resources;
}

double Occupancy(const Launch& launch, int registers,
                 const CudaDevice& device = kH200) {
  const KernelResources resources = Registers(registers);
  return OccupancyOf(launch, &resources, device).occupancy.value();
}

// Grids that fill the device: as NVIDIA's occupancy calculator has it.
TEST(CudaOccupancyTest, IsWhatTheScarcestResourceAllows) {
  EXPECT_EQ(Occupancy(Of(9999, 256), 32), 1);         // warps
  EXPECT_EQ(Occupancy(Of(9999, 32), 32), 0.5);        // 32 blocks of a warp
  EXPECT_EQ(Occupancy(Of(9999, 128), 64), 0.5);       // registers
  EXPECT_EQ(Occupancy(Of(9999, 128), 65), 28. / 64);  // 72 of each thread
  EXPECT_EQ(Occupancy(Of(9999, 1024), 33), 0.5);      // a block is whole
  // 228 KiB: two blocks of 113 KiB and the system's one.
  EXPECT_EQ(Occupancy(Of(9999, 256, 113 << 10), 32), 0.25);
  EXPECT_EQ(Occupancy(Of(9999, 256, (113 << 10) + 1), 32), 0.125);
  EXPECT_EQ(Occupancy(Of(9999, 33), 32), 1);  // 32 blocks of two warps
}

TEST(CudaOccupancyTest, CountsStaticSharedMemory) {
  KernelResources resources = Registers(32);
  resources.shared_bytes = 113 << 10;
  EXPECT_THAT(OccupancyOf(Of(9999, 256), &resources, kH200).occupancy,
              Optional(0.25));
}

TEST(CudaOccupancyTest, AFewBlocksAreAFewMultiprocessors) {
  const KernelResources resources = Registers(32);
  const CudaOccupancy few = OccupancyOf(Of(16, 256), &resources, kH200);
  EXPECT_THAT(few.blocks, Optional(16));
  EXPECT_THAT(few.multiprocessors_busy, Optional(16));
  EXPECT_THAT(few.occupancy, Optional(16 * 8 / (132. * 64)));
  const CudaOccupancy many = OccupancyOf(Of(200, 256), &resources, kH200);
  EXPECT_THAT(many.multiprocessors_busy, Optional(132));
  EXPECT_THAT(many.occupancy, Optional(200 * 8 / (132. * 64)));
}

TEST(CudaOccupancyTest, WhatIsLeftOfWholeClustersIsIdle) {
  const KernelResources resources = Registers(32);
  const CudaOccupancy all =
      OccupancyOf(Of(160, 1024, 0, /*cluster=*/16), &resources, kH200);
  EXPECT_THAT(all.multiprocessors_busy, Optional(128));
  EXPECT_THAT(all.occupancy, Optional(160 * 32 / (132. * 64)));
}

TEST(CudaOccupancyTest, EachModelHasAClusterOfItsOwn) {
  const KernelResources resources = Registers(128);
  Launch launch = Of(16, 512, 200 << 10, /*cluster=*/16);
  launch.grid.z = 5;
  const CudaOccupancy five = OccupancyOf(launch, &resources, kH200);
  EXPECT_THAT(five.blocks, Optional(80));
  EXPECT_THAT(five.multiprocessors_busy, Optional(80));
  EXPECT_THAT(five.occupancy, Optional(80 * 16 / (132. * 64)));
  launch.grid.z = 16;  // in two rounds
  const CudaOccupancy many = OccupancyOf(launch, &resources, kH200);
  EXPECT_THAT(many.blocks, Optional(256));
  EXPECT_THAT(many.multiprocessors_busy, Optional(128));
  EXPECT_THAT(many.occupancy, Optional(128 * 16 / (132. * 64)));
}

TEST(CudaOccupancyTest, IsUnknownWithoutTheRegistersOrTheDevicesLimits) {
  const CudaOccupancy no_table = OccupancyOf(Of(16, 256), nullptr, kH200);
  EXPECT_THAT(no_table.multiprocessors_busy, Optional(16));
  EXPECT_EQ(no_table.occupancy, std::nullopt);
  CudaDevice device = kH200;
  device.compute_major = 7;
  const KernelResources resources = Registers(32);
  EXPECT_EQ(OccupancyOf(Of(16, 256), &resources, device).occupancy,
            std::nullopt);
}

TEST(CudaOccupancyTest, TheMeanIsOverTheNodesOfWhichItIsKnown) {
  std::vector<CudaNode> nodes(3);
  nodes[0].launch = Of(10, 256);
  nodes[1].library = true;
  nodes[2].launch = Of(200, 256);
  const CudaOccupancyReport report = OccupancyOf(nodes, true, kH200);
  EXPECT_EQ(report.multiprocessors, 132);
  EXPECT_EQ(report.nodes[1].occupancy.blocks, std::nullopt);
  EXPECT_THAT(report.mean.blocks, Optional(105));
  EXPECT_THAT(report.mean.multiprocessors_busy, Optional(71));
  EXPECT_EQ(report.mean.occupancy, std::nullopt);
}

// A net of 8 hidden units is a block each, and yet the counter is at 100 %.
TEST(CudaOccupancyTest, OfAStepIsInTheReport) {
  EmulatedCuda cuda;
  const Dataset data = RandomRows(20, 16, 3, /*seed=*/1);
  const auto report = [&](Dispatch dispatch) {
    CompileOptions options;
    options.device = Device::kGpu;
    options.dispatch = dispatch;
    options.cuda.cuda = &cuda;
    options.cuda.tier = CudaTier::kFused;
    const auto session =
        StepSession::Create({.widths = {16, 8, 3}}, {}, options, data, 4);
    EXPECT_OK(session);
    return (*session)->compiled().cuda->occupancy;
  };
  const CudaOccupancyReport queued = report(Dispatch::kGraph);
  EXPECT_EQ(queued.nodes.size(), 4);
  EXPECT_EQ(queued.nodes[0].label, "forward");
  EXPECT_LT(queued.mean.multiprocessors_busy.value(), 132);
  // Where nvcc has made the kernels, the registers of all are known.
  EXPECT_EQ(queued.mean.occupancy.has_value(), !AllKernelResources().empty());
  EXPECT_THAT(queued.utilisation_counter, Optional(1));
  // Nothing is known of how well the host keeps up.
  EXPECT_EQ(report(Dispatch::kOps).utilisation_counter, std::nullopt);
}

}  // namespace
}  // namespace onestep
