// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/nearest.h"

#include <gtest/gtest.h>

namespace onestep {
namespace {

TEST(NearestTest, DistanceCountsInsertedDeletedAndReplacedLetters) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("abc", "abxc"), 1);
  EXPECT_EQ(EditDistance("abc", "ac"), 1);
  EXPECT_EQ(EditDistance("abc", "axc"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("sitting", "kitten"), 3);
}

TEST(NearestTest, TakesTheFirstOfEquallyNearCandidates) {
  EXPECT_EQ(NearestOf("trian", {"eval", "train", "info"}), "train");
  EXPECT_EQ(NearestOf("x", {"b", "a"}), "b");
  EXPECT_EQ(NearestOf("x", {}), "");
}

}  // namespace
}  // namespace onestep
