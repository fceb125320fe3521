// SPDX-License-Identifier: Apache-2.0
#include "trainer/confusion.h"

#include <gtest/gtest.h>

namespace onestep {
namespace {

TEST(ConfusionTest, PrecisionAndRecallAreSharesOfColumnAndRow) {
  Confusion confusion(3);
  for (int i = 0; i < 3; ++i) confusion.Add(0, 0);
  confusion.Add(0, 1);
  confusion.Add(1, 0);
  confusion.Add(1, 1);
  EXPECT_EQ(confusion.count(0, 1), 1);
  EXPECT_EQ(confusion.RowsOf(0), 4);
  EXPECT_EQ(confusion.Precision(0), 0.75);
  EXPECT_EQ(confusion.Recall(0), 0.75);
  EXPECT_EQ(confusion.Precision(1), 0.5);
  EXPECT_EQ(confusion.Recall(1), 0.5);
}

TEST(ConfusionTest, AClassWithoutRowsHasNeither) {
  const Confusion confusion(2);
  EXPECT_FALSE(confusion.Precision(1).has_value());
  EXPECT_FALSE(confusion.Recall(1).has_value());
}

TEST(ConfusionTest, ARowWithoutPredictionCountsAsWrong) {
  Confusion confusion(2);
  confusion.Add(0, -1);
  confusion.Add(0, 0);
  EXPECT_EQ(confusion.without_prediction(), 1);
  EXPECT_EQ(confusion.Recall(0), 0.5);
  EXPECT_EQ(confusion.Precision(0), 1.0);
}

}  // namespace
}  // namespace onestep
