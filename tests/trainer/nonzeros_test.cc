// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/nonzeros.h"

#include <gtest/gtest.h>

namespace onestep {
namespace {

TEST(NonzerosTest, CountsThePixelsThatAreNotZero) {
  Dataset data;
  data.images = {0, 7, 255, 0, 0, 0, 1, 0};
  EXPECT_EQ(CountNonzeros(data), 3);
  EXPECT_DOUBLE_EQ(Density(data), 3.0 / 8);
}

TEST(NonzerosTest, NoPixelsHaveNoDensity) {
  EXPECT_EQ(CountNonzeros(Dataset()), 0);
  EXPECT_EQ(Density(Dataset()), 0);
}

}  // namespace
}  // namespace onestep
