// SPDX-License-Identifier: Apache-2.0
#include "trainer/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/temp_folder.h"

namespace onestep {
namespace {

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONESTEP_CACHE", folder_.path().c_str(), /*overwrite=*/1);
  }
  void TearDown() override { unsetenv("ONESTEP_CACHE"); }

 private:
  const TempFolder folder_;
};

TEST_F(CacheTest, KeepsWhatAnotherRunKeptMeanwhile) {
  Cache first("file.json", "a value"), second("file.json", "a value");
  second.Put("b", 2);
  first.Put("a", 1);
  const Cache third("file.json", "a value");
  EXPECT_THAT(third.Keys(), testing::ElementsAre("b", "a"));
  EXPECT_EQ(third.Get("a"), 1);
  EXPECT_EQ(third.Get("b"), 2);
  EXPECT_TRUE(third.Get("c").is_null());
}

TEST_F(CacheTest, AKeyWithAvx3AsIsaIsFoundAsAvx512) {
  Cache("file.json", "a value").Put(R"({"cpu":{"isa":"avx3"},"batch":32})", 1);
  const Cache later("file.json", "a value");
  EXPECT_EQ(later.Get(R"({"cpu":{"isa":"AVX-512"},"batch":32})"), 1);
  EXPECT_EQ(later.Keys().size(), 1);
}

TEST_F(CacheTest, TheLaterValueOfAKeyCounts) {
  Cache first("file.json", "a value"), second("file.json", "a value");
  second.Put("a", 2);
  first.Put("a", 1);
  EXPECT_EQ(first.Get("a"), 1);
  EXPECT_EQ(Cache("file.json", "a value").Get("a"), 1);
}

}  // namespace
}  // namespace onestep
