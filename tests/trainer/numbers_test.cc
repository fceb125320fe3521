// SPDX-License-Identifier: Apache-2.0
#include "trainer/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/status_matchers.h"

namespace onestep {
namespace {

TEST(NumbersTest, BoundsAreIncluded) {
  ASSERT_OK_AND_ASSIGN(const int64_t low, ParseInteger("1", 1, 8));
  ASSERT_OK_AND_ASSIGN(const int64_t high, ParseInteger("8", 1, 8));
  EXPECT_EQ(low, 1);
  EXPECT_EQ(high, 8);
  EXPECT_THAT(ParseInteger("9", 1, 8),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "want an integer from 1 to 8, got '9'"));
  EXPECT_THAT(ParseInteger("-1", 0, 8),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("got '-1'")));
}

TEST(NumbersTest, NumbersMayHaveExponents) {
  ASSERT_OK_AND_ASSIGN(const double value, ParseNumber("2.5e-1", 0, 1));
  EXPECT_EQ(value, 0.25);
}

TEST(NumbersTest, QuoteKeepsAMessageInOneShortLine) {
  EXPECT_EQ(Quote("a\nb"), "'a\\nb'");
  EXPECT_EQ(Quote(std::string(100, 'x')), "'" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace onestep
