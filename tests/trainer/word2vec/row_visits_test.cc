// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/row_visits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "trainer/word2vec/subsample.h"

namespace onestep {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

class RowVisitsTest : public testing::Test {
 protected:
  RowVisitsTest() {
    config_.window = 3;  // 4 contexts on average
    config_.negative = 2;
    config_.lr = 0.1;
    source_.config = &config_;
    source_.counts = counts_;
    source_.keep = keep_;
    source_.negatives = &negatives_;
    source_.tree = &tree_;
  }

  const std::vector<int64_t> counts_ = {6, 3, 1};
  const std::vector<uint32_t> keep_ = KeepThresholds(counts_, 0);
  const AliasTable negatives_{counts_, 1};
  const HuffmanTree tree_{counts_};
  Word2vecConfig config_;
  SamplerSource source_;
};

auto Near(double value) { return DoubleNear(value, 1e-6); }

TEST_F(RowVisitsTest, AContextMeetsTheCentreAndItsNegatives) {
  EXPECT_THAT(
      VisitsOfRows(source_, 3),
      ElementsAre(Near(4 * 3 * 0.6), Near(4 * 3 * 0.3), Near(4 * 3 * 0.1)));
  config_.cbow = true;  // one context, of which each word is a part
  EXPECT_THAT(VisitsOfRows(source_, 2),
              ElementsAre(Near(3 * 0.6), Near(3 * 0.3)));
}

// The root is on every path, the node below it on those of 3 and 1: 1.4 nodes
// of a path, which a context meets.
TEST_F(RowVisitsTest, InnerNodesMeetAllContextsBelowThem) {
  config_.hs = true;
  EXPECT_THAT(VisitsOfRows(source_, 2),
              ElementsAre(Near(4), Near(4 * 1.4 * 0.3)));
}

TEST_F(RowVisitsTest, MoreVisitsMoreWorkersAndHigherRatesAreMergedMoreOften) {
  EXPECT_DOUBLE_EQ(WindowsUnseen(2, 1, 0.1), 40);
  EXPECT_DOUBLE_EQ(WindowsUnseen(4, 1, 0.1), 20);
  EXPECT_DOUBLE_EQ(WindowsUnseen(4, 5, 0.1), 4);
  EXPECT_DOUBLE_EQ(WindowsUnseen(4, 5, 0.2), 2);
}

TEST_F(RowVisitsTest, GroupsCoverAllRowsOfHalfTheVisitsAtLeast) {
  const std::vector<MergeGroup> groups = MergeGroups(source_, 3, 1, 30);
  ASSERT_EQ(groups.size(), 3);  // 7.2, 3.6 and 1.2 visits
  EXPECT_EQ(groups[0].begin, 0);
  EXPECT_EQ(groups[1].begin, 1);
  EXPECT_EQ(groups[2].begin, 2);
  EXPECT_THAT(groups[0].windows, Near(8 / 0.72));
  EXPECT_THAT(groups[1].windows, Near(8 / 0.36));
  EXPECT_EQ(groups[2].windows, 30);
  EXPECT_EQ(groups[2].rows, 1);
}

TEST_F(RowVisitsTest, StepsAreWholeWindows) {
  EXPECT_EQ(StepsUnseen(source_, 1, 256), 11);
  EXPECT_EQ(StepsUnseen(source_, 1, 5), 5);
  EXPECT_EQ(StepsUnseen(source_, 100, 256), 1);
  config_.negatives.contexts = Negatives::kExact;  // a step of each context
  EXPECT_EQ(StepsUnseen(source_, 1, 256), 44);
  EXPECT_EQ(StepsUnseen(source_, 100, 256), 6);
}

}  // namespace
}  // namespace onestep
