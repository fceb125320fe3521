// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/peak.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cpu/cpu_info.h"

namespace onestep {
namespace {

using testing::HasSubstr;

TEST(PeakProbeTest, HasNoMoreThreadsThanThereAreCpus) {
  EXPECT_EQ(PeakProbe(1).threads(), 1);
  EXPECT_EQ(PeakProbe(UsableCpus() + 1).threads(), UsableCpus());
}

TEST(TakeTurnsNoteTest, IsOfMoreThreadsThanCpus) {
  EXPECT_EQ(TakeTurnsNote(UsableCpus()), "");
  EXPECT_THAT(TakeTurnsNote(UsableCpus() + 7), HasSubstr("take turns on"));
}

}  // namespace
}  // namespace onestep
