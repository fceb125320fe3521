// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/cuda_emulator/emulator_test_kernels.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

TEST(EmulatorTest, RunsEveryThreadOfEveryBlock) {
  std::vector<float> x(4000), y(4000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i;
  const Launch launch = cuda::TestScale(x.data(), 2, y.data(), 4000);
  EXPECT_STREQ(launch.name, "ScaleKernel<4,true>");
  EXPECT_OK(Emulate(launch, 1));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]);
}

}  // namespace
}  // namespace onestep
