// SPDX-License-Identifier: Apache-2.0
// On a libcupti of the tests (fake_cupti.cc); what the machine's own one
// answers is up to the machine.
#include "runtime/cuda/cupti_accounting.h"

#include <cupti.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;
const std::string kFake = ONESTEP_FAKE_CUPTI;

void Call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const char* name,
          void (*inside)() = nullptr, bool ends_only = false) {
  static const auto call = reinterpret_cast<decltype(&Call)>(
      dlsym(dlopen(kFake.c_str(), RTLD_NOW), "FakeCall"));
  call(domain, id, name, inside, ends_only);
}

void Launch() { Call(CUPTI_CB_DOMAIN_DRIVER_API, 7, "cuLaunchKernelEx"); }
void Wait() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

auto Line(const char* call, int64_t calls) {
  return AllOf(Field(&CudaCallStats::call, call),
               Field(&CudaCallStats::calls, calls));
}

TEST(CuptiAccountingTest, CountsAndTimesEachFunction) {
  ASSERT_OK_AND_ASSIGN(const auto accounting, CountCallsByCupti(kFake));
  Call(CUPTI_CB_DOMAIN_RUNTIME_API, 1, "cudaStreamSynchronize_v3020", Wait);
  for (int i = 0; i < 3; ++i) Launch();
  const std::vector<CudaCallStats> stats = accounting->Stats();
  EXPECT_THAT(stats, ElementsAre(Line("cudaStreamSynchronize_v3020", 1),
                                 Line("cuLaunchKernelEx", 3)));
  EXPECT_GE(stats[0].total_us, 2000);
}

TEST(CuptiAccountingTest, ACallInsideAnotherIsPartOfThatOne) {
  ASSERT_OK_AND_ASSIGN(const auto accounting, CountCallsByCupti(kFake));
  Call(CUPTI_CB_DOMAIN_RUNTIME_API, 2, "cudaLaunchKernelExC_v11060", Launch);
  EXPECT_THAT(accounting->Stats(),
              ElementsAre(Line("cudaLaunchKernelExC_v11060", 1)));
}

TEST(CuptiAccountingTest, ACallThatBeganBeforeIsNotCounted) {
  ASSERT_OK_AND_ASSIGN(const auto accounting, CountCallsByCupti(kFake));
  Call(CUPTI_CB_DOMAIN_RUNTIME_API, 3, "cudaFree_v3020", nullptr,
       /*ends_only=*/true);
  EXPECT_THAT(accounting->Stats(), IsEmpty());
  Launch();
  EXPECT_THAT(accounting->Stats(), ElementsAre(Line("cuLaunchKernelEx", 1)));
}

TEST(CuptiAccountingTest, CountsTheCallsOfAllThreads) {
  ASSERT_OK_AND_ASSIGN(const auto accounting, CountCallsByCupti(kFake));
  const auto launches = [] {
    for (int i = 0; i < 100; ++i) Launch();
  };
  std::thread other(launches);
  launches();
  other.join();
  EXPECT_THAT(accounting->Stats(), ElementsAre(Line("cuLaunchKernelEx", 200)));
}

TEST(CuptiAccountingTest, CountsNothingAfterItsEnd) {
  ASSERT_OK_AND_ASSIGN(auto accounting, CountCallsByCupti(kFake));
  accounting.reset();
  Launch();
  ASSERT_OK_AND_ASSIGN(accounting, CountCallsByCupti(kFake));
  EXPECT_THAT(accounting->Stats(), IsEmpty());
}

TEST(CuptiAccountingTest, AnotherToolThatHasItIsTheReason) {
  ASSERT_OK_AND_ASSIGN(const auto first, CountCallsByCupti(kFake));
  EXPECT_THAT(CountCallsByCupti(kFake).status(),
              StatusIs(kUnavailable,
                       HasSubstr("cupti: cuptiSubscribe: CUPTI_ERROR_MULTIPLE_"
                                 "SUBSCRIBERS_NOT_SUPPORTED (39)")));
  // The first is not disturbed.
  Launch();
  EXPECT_THAT(first->Stats(), ElementsAre(Line("cuLaunchKernelEx", 1)));
}

TEST(CuptiAccountingTest, AMissingLibraryIsTheReason) {
  EXPECT_THAT(CountCallsByCupti("/nowhere/libcupti.so.13").status(),
              StatusIs(kUnavailable, HasSubstr("/nowhere/libcupti.so.13")));
}

TEST(CuptiAccountingTest, ALibraryThatIsAnotherIsTheReason) {
  EXPECT_THAT(CountCallsByCupti("libm.so.6").status(),
              StatusIs(kUnavailable,
                       "cupti: libm.so.6 lacks "
                       "cuptiEnableDomain"));
}

TEST(CuptiAccountingTest, WithoutADriverTheMachinesOwnSaysWhy) {
  const auto accounting = CountCallsByCupti();
  if (accounting.ok()) GTEST_SKIP() << "CUPTI works here";
  EXPECT_THAT(accounting.status(),
              StatusIs(kUnavailable, HasSubstr("cupti: ")));
}

}  // namespace
}  // namespace onestep
