// SPDX-License-Identifier: Apache-2.0
// The probe on the emulated CUDA, where times mean nothing: that each
// measurement is a row.
#include "runtime/cuda/cuda_probe.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

TEST(CudaProbeTest, EveryMeasurementIsARow) {
  EmulatedCuda cuda;
  const CudaProbeOptions small = {
      .samples = 3, .launches = 8, .copy_bytes = 4096, .matmul = 8};
  ASSERT_OK_AND_ASSIGN(const CudaProbe probe, RunCudaProbe(cuda, small));
  EXPECT_EQ(probe.device.multiprocessors, 132);
  std::vector<std::string> names;
  for (const CudaProbeRow& row : probe.rows) {
    names.push_back(row.name);
    EXPECT_GT(row.value, 0) << row.name << ": " << row.doubt;
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                         kGraphNodeRow, kGraphLaunchRow,
                         "graph node, chain of 64, programmatic edges",
                         kStreamLaunchRow, "CPU time of a kernel launch",
                         kToDeviceRow, kDeviceMemoryRow, "matmul 8x8x8 fp32",
                         "matmul 8x8x8 tf32", "matmul 8x8x8 bf16"));
}

TEST(CudaProbeTest, AMatMulThatTheLibraryLacksIsARowWithTheReason) {
  EmulatedCuda cuda({.no_algorithm = [](const CudaMatMul& matmul) {
    return matmul.math == MathMode::kBf16;
  }});
  const CudaProbeOptions small = {
      .samples = 1, .launches = 8, .copy_bytes = 4096, .matmul = 8};
  ASSERT_OK_AND_ASSIGN(const CudaProbe probe, RunCudaProbe(cuda, small));
  EXPECT_EQ(probe.rows.back().name, "matmul 8x8x8 bf16");
  EXPECT_EQ(probe.rows.back().value, 0);
  EXPECT_NE(probe.rows.back().doubt, "");
}

}  // namespace
}  // namespace onestep
