// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// y = x + 1 over one float, with a stream in and a stream out.
std::unique_ptr<Chain> AddOne() {
  auto chain = Chain::Create({Slot{}, Slot{"x", 4, -1}, Slot{"y", 4, 0}},
                             kBufferAlignment);
  EXPECT_OK(chain);
  float* const* x = (*chain)->address<float>(1);
  float* const* y = (*chain)->address<float>(2);
  (*chain)->AddStep({}, [=] { **y = **x + 1; });
  EXPECT_OK((*chain)->Finish("test", ""));
  return *std::move(chain);
}

TEST(ChainTest, StridedBindingsAdvanceOncePerStepAndContinue) {
  auto chain = AddOne();
  float x[] = {1, 2, 3, 4}, y[4] = {};
  ASSERT_OK(chain->Bind("x", x, sizeof(float)));
  ASSERT_OK(chain->Bind("y", y, sizeof(float)));
  ASSERT_OK(chain->Run(1));
  EXPECT_THAT(y, ElementsAre(2, 0, 0, 0));
  ASSERT_OK(chain->Run(3));
  EXPECT_THAT(y, ElementsAre(2, 3, 4, 5));
}

TEST(ChainTest, BindingAgainStartsAgain) {
  auto chain = AddOne();
  float x[] = {1, 2}, y = 0;
  ASSERT_OK(chain->Bind("x", x, sizeof(float)));
  ASSERT_OK(chain->Bind("y", &y));
  ASSERT_OK(chain->Run(2));
  EXPECT_EQ(y, 3);
  ASSERT_OK(chain->Bind("x", x));
  ASSERT_OK(chain->Run(2));
  EXPECT_EQ(y, 2);
}

// As AddOne, but a call of many steps makes up to two, and says of how many it
// was asked.
std::unique_ptr<Chain> RepeatedAddOne(std::vector<int64_t>& asked) {
  std::unique_ptr<Chain> chain = AddOne();
  float* const* x = chain->address<float>(1);
  float* const* y = chain->address<float>(2);
  chain->SetRepeat([=, &asked](int64_t n) {
    asked.push_back(n);
    n = std::min<int64_t>(n, 2);
    for (int64_t i = 0; i < n; ++i) (*y)[i] = (*x)[i] + 1;
    return n;
  });
  return chain;
}

TEST(ChainTest, ACallOfManyStepsIsAskedForThoseThatAreLeft) {
  std::vector<int64_t> asked;
  auto chain = RepeatedAddOne(asked);
  float x[] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  ASSERT_OK(chain->Bind("x", x, sizeof(float)));
  ASSERT_OK(chain->Bind("y", y, sizeof(float)));
  ASSERT_OK(chain->Run(5));
  EXPECT_THAT(y, ElementsAre(2, 3, 4, 5, 6, 0));
  ASSERT_OK(chain->Run(1));
  EXPECT_THAT(y, ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(asked, ElementsAre(5, 3, 1, 1));
}

TEST(ChainTest, ACallOfManyStepsIsNotMadeBesideAnother) {
  std::vector<int64_t> asked;
  auto chain = RepeatedAddOne(asked);
  int calls = 0;
  chain->AddStep({}, [&] { ++calls; });
  float x[] = {1, 2, 3}, y[3] = {};
  ASSERT_OK(chain->Bind("x", x, sizeof(float)));
  ASSERT_OK(chain->Bind("y", y, sizeof(float)));
  ASSERT_OK(chain->Run(3));
  EXPECT_THAT(y, ElementsAre(2, 3, 4));
  EXPECT_EQ(calls, 3);
  EXPECT_THAT(asked, IsEmpty());
}

TEST(ChainTest, ATracedRunMakesTheCallOfEachStep) {
  std::vector<int64_t> asked;
  auto chain = RepeatedAddOne(asked);
  float x[] = {1, 2, 3}, y[3] = {};
  ASSERT_OK(chain->Bind("x", x, sizeof(float)));
  ASSERT_OK(chain->Bind("y", y, sizeof(float)));
  StepTrace trace;
  ASSERT_OK(chain->RunTraced(3, trace));
  EXPECT_THAT(y, ElementsAre(2, 3, 4));
  EXPECT_EQ(trace.workers[0].stamps.size(), 6u);
  EXPECT_THAT(asked, IsEmpty());
}

TEST(ChainTest, AnUnboundInputIsNamed) {
  EXPECT_THAT(AddOne()->Run(1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("x is not bound")));
}

TEST(ChainTest, AnUnknownNameIsNotFound) {
  float v = 0;
  EXPECT_THAT(AddOne()->Bind("zz", &v),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("zz")));
}

TEST(ChainTest, TheFirstErrorOfACallEndsTheRun) {
  auto created = Chain::Create({Slot{}}, 0);
  ASSERT_OK(created);
  Chain* const chain = created->get();
  int calls = 0;
  chain->AddStep({}, [&, chain] {
    ++calls;
    chain->Fail(absl::InternalError("broken"));
  });
  ASSERT_OK(chain->Finish("test", ""));
  EXPECT_THAT(chain->Run(5),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("broken")));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace onestep
