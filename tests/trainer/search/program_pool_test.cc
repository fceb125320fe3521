// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/program_pool.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"

namespace onestep {
namespace {

class ProgramPoolTest : public testing::Test {
 protected:
  static CompileOptions Options() {
    CompileOptions options;
    options.dispatch = Dispatch::kSingle;
    options.kernels = Kernels::kLoops;
    return options;
  }
  static Trial Of(int64_t hidden) {
    Trial trial;
    trial.model.widths = {6, hidden, 3};
    trial.batch = 5;
    return trial;
  }
  ProgramSet* Get(int64_t hidden, int64_t models = 1) {
    const auto set = pool_.Get(Of(hidden), models, /*sparse=*/false);
    EXPECT_OK(set.status());
    return *set;
  }

  const Dataset data_ = RandomRows(20, 6, 3, /*seed=*/1);
  const RowPlan plan_ = {15, 5};
  const RowOrder order_;
  ProgramPool pool_{Options(), 0, data_, plan_, order_};
};

TEST_F(ProgramPoolTest, ASetIsKeptByKindAndModels) {
  ProgramSet* const four = Get(4);
  EXPECT_NE(Get(4, 2), four);
  EXPECT_NE(Get(5), four);
  EXPECT_EQ(Get(4), four);
}

TEST_F(ProgramPoolTest, KindsThatAreNotKeptEnd) {
  ProgramSet* const four = Get(4);
  Get(5);
  Get(5, 2);
  EXPECT_EQ(pool_.sets(), 3);
  pool_.KeepKinds({KindOf(Of(4)), KindOf(Of(6))});
  EXPECT_EQ(pool_.sets(), 1);
  EXPECT_EQ(Get(4), four);
  pool_.Forget(*four);
  EXPECT_EQ(pool_.sets(), 0);
}

TEST_F(ProgramPoolTest, AProgramIsCompiledWhereAllAreInUse) {
  ProgramSet* const set = Get(4);
  EXPECT_EQ(set->programs(), 1);
  {
    ASSERT_OK_AND_ASSIGN(const ProgramSet::Lease first, set->Take());
    ASSERT_OK_AND_ASSIGN(const ProgramSet::Lease second, set->Take());
    EXPECT_NE(first, second);
    EXPECT_EQ(set->programs(), 2);
  }
  EXPECT_OK(set->Take().status());
  EXPECT_EQ(set->programs(), 2);
  set->Trim(1);
  EXPECT_EQ(set->programs(), 1);
  EXPECT_OK(set->Take().status());
  EXPECT_EQ(set->programs(), 1);
}

TEST_F(ProgramPoolTest, ThreadsTakeProgramsAtTheSameTime) {
  ProgramSet* const set = Get(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) EXPECT_OK(set->Take().status());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(set->programs(), 3);
}

}  // namespace
}  // namespace onestep
