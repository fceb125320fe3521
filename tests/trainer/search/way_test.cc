// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/way.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onestep {
namespace {

using testing::ElementsAre;

constexpr Way kVector = {true, false};

TEST(BundleSizesTest, ALoopHasOneTrialInEach) {
  EXPECT_THAT(BundleSizes(Way(), 3, 2, 32), ElementsAre(1, 1, 1));
}

TEST(BundleSizesTest, VectorsAreAsManyAsAMultipleOfTheWorkers) {
  EXPECT_THAT(BundleSizes(kVector, 16, 2, 32), ElementsAre(8, 8));
  EXPECT_THAT(BundleSizes(kVector, 17, 2, 32), ElementsAre(9, 8));
  EXPECT_THAT(BundleSizes(kVector, 70, 2, 32), ElementsAre(18, 18, 17, 17));
  EXPECT_THAT(BundleSizes(kVector, 64, 3, 32), ElementsAre(22, 21, 21));
}

TEST(BundleSizesTest, VectorsOfFewTrialsHaveTwoAtLeast) {
  EXPECT_THAT(BundleSizes(kVector, 1, 4, 32), ElementsAre(1));
  EXPECT_THAT(BundleSizes(kVector, 3, 4, 32), ElementsAre(3));
  EXPECT_THAT(BundleSizes(kVector, 5, 4, 32), ElementsAre(3, 2));
}

TEST(BundleSizesTest, OneWorkerHasTheFewestThatHoldAll) {
  EXPECT_THAT(BundleSizes(kVector, 32, 1, 32), ElementsAre(32));
  EXPECT_THAT(BundleSizes(kVector, 33, 1, 32), ElementsAre(17, 16));
}

}  // namespace
}  // namespace onestep
