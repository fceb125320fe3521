// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cpu/cpu_info.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Affinity kAnywhere;

class TeamTest : public testing::TestWithParam<int> {};

TEST_P(TeamTest, RunsEveryWorkerOnceInItsOwnThread) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team,
                       Team::Create(GetParam(), kAnywhere));
  EXPECT_EQ(team->workers(), GetParam());
  std::vector<int> calls(GetParam());  // not atomic: a race shows under TSan
  std::vector<std::thread::id> threads(GetParam());
  team->Run([&](int worker) {
    ++calls[worker];
    threads[worker] = std::this_thread::get_id();
  });
  EXPECT_THAT(calls, Each(1));
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  std::sort(threads.begin(), threads.end());
  EXPECT_EQ(std::adjacent_find(threads.begin(), threads.end()), threads.end());
}

TEST_P(TeamTest, RunsOneFunctionAfterAnother) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team,
                       Team::Create(GetParam(), kAnywhere));
  std::vector<int> sums(GetParam());
  int from_caller = 0;
  for (int i = 0; i < 500; ++i) {
    ++from_caller;
    if (i % 2 == 0) {
      team->Run([&](int worker) { sums[worker] += from_caller; });
    } else {
      team->Run([&](int worker) { sums[worker] -= from_caller - 3; });
    }
  }
  EXPECT_THAT(sums, Each(250 * 2));
}

TEST_P(TeamTest, ItsBarrierSeparatesThePhasesOfAFunction) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team,
                       Team::Create(GetParam(), kAnywhere));
  const int workers = team->workers();
  std::vector<int> values(workers), wrong(workers);
  for (int run = 0; run < 10; ++run) {
    team->Run([&](int worker) {
      for (int phase = 0; phase < 20; ++phase) {
        values[worker] = phase;
        team->barrier().Wait(worker);
        wrong[worker] += values[(worker + 1) % workers] != phase;
        team->barrier().Wait(worker);
      }
    });
  }
  EXPECT_THAT(wrong, Each(0));
}

TEST_P(TeamTest, TreatsDenormalsAsZeroInsideOnly) {
#if defined(__x86_64__) || defined(__aarch64__)
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team,
                       Team::Create(GetParam(), kAnywhere));
  volatile float smallest = std::numeric_limits<float>::min();
  volatile float denormal = std::numeric_limits<float>::denorm_min();
  volatile float half = 0.5f, large = 0x1p100f;
  std::vector<float> results(team->workers(), 1), operands = results;
  team->Run([&](int worker) {
    results[worker] = smallest * half;
    operands[worker] = denormal * large;
  });
  EXPECT_THAT(results, Each(0));
  EXPECT_THAT(operands, Each(0));
  EXPECT_GT(smallest * half, 0);
  EXPECT_GT(denormal * large, 0);
#else
  GTEST_SKIP() << "no such mode on this CPU";
#endif
}

INSTANTIATE_TEST_SUITE_P(Workers, TeamTest, testing::Values(1, 2, 3, 5, 8),
                         testing::PrintToStringParamName());

TEST(TeamLifeTest, ManyTeamsComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team,
                         Team::Create(1 + i % 4, kAnywhere));
    if (i % 3 == 0) continue;  // also without a single run
    std::vector<int> calls(team->workers());
    team->Run([&](int worker) { ++calls[worker]; });
    EXPECT_THAT(calls, Each(1));
  }
}

TEST(TeamLifeTest, SleepsBetweenTwoFunctions) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team,
                       Team::Create(2, kAnywhere));
  team->Run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto cpu_ms = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
  };
  const double before = cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(cpu_ms() - before, 10);  // one that spins takes 50
}

TEST(TeamLifeTest, SpinsOnlyWhereEveryWorkerHasACpu) {
  const int cpus = static_cast<int>(AffinityCpus().size());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> alone,
                       Team::Create(1, kAnywhere));
  EXPECT_EQ(alone->barrier().spins(), Barrier::kSpins);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> crowd,
                       Team::Create(cpus + 1, kAnywhere));
  EXPECT_EQ(crowd->barrier().spins(), 0);
}

TEST(TeamLifeTest, SaysHowManyThreadsItWanted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs all the address space";
#endif
  const auto create = [] {
    const rlimit limit{1 << 30, 1 << 30};  // fewer than 128 stacks of 8 MiB
    setrlimit(RLIMIT_AS, &limit);
    const rlimit stack{8 << 20, 8 << 20};
    setrlimit(RLIMIT_STACK, &stack);
    const absl::Status status = Team::Create(1000, kAnywhere).status();
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::_Exit(0);  // the child is done; threads were joined
  };
  EXPECT_EXIT(create(), testing::ExitedWithCode(0),
              "RESOURCE_EXHAUSTED: team: want 999 threads, got [0-9]+: ");
}

TEST(TeamAffinityTest, PinsEveryWorkerAndTheCallerWhileItRuns) {
  const std::vector<int> allowed = AffinityCpus();
  const int workers = std::min<int>(allowed.size(), 4);
  // Backwards, so that it is not the compact order by chance.
  const std::vector<int> cpus(allowed.rbegin(), allowed.rbegin() + workers);
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team,
                         Team::Create(workers, {Affinity::kList, cpus}));
    std::vector<std::vector<int>> seen(workers);
    team->Run([&](int worker) { seen[worker] = AffinityCpus(); });
    for (int w = 0; w < workers; ++w) {
      EXPECT_THAT(seen[w], ElementsAre(cpus[w])) << "worker " << w;
    }
    // Outside Run the caller goes where it likes, and so do new teams.
    EXPECT_EQ(AffinityCpus(), allowed);
    EXPECT_OK(Team::Create(workers, {Affinity::kList, cpus}).status());
  }
  EXPECT_EQ(AffinityCpus(), allowed);
}

TEST(TeamAffinityTest, CompactHoldsMoreWorkersThanCpus) {
  const std::vector<int> allowed = AffinityCpus();
  const int cpus = static_cast<int>(allowed.size());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Team> team,
                       Team::Create(cpus + 1, {Affinity::kCompact, {}}));
  std::vector<std::vector<int>> seen(cpus + 1);
  team->Run([&](int worker) { seen[worker] = AffinityCpus(); });
  EXPECT_THAT(seen[0], ElementsAre(allowed[0]));
  EXPECT_EQ(seen[cpus], seen[0]);
}

TEST(TeamAffinityTest, RefusesACpuThatIsNotAllowed) {
  const int beyond = AffinityCpus().back() + 1;
  EXPECT_THAT(Team::Create(1, {Affinity::kList, {beyond}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got " + std::to_string(beyond))));
}

}  // namespace
}  // namespace onestep
