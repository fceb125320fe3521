// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace onestep {
namespace {

// Runs fn(worker) in as many threads.
template <typename Fn>
void InThreads(int workers, const Fn& fn) {
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w) threads.emplace_back(fn, w);
  for (std::thread& thread : threads) thread.join();
}

// Workers and spins; more workers than most test machines have cores.
class BarrierTest : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(BarrierTest, ShowsEverybodyWhatWasWrittenBefore) {
  const auto [workers, spins] = GetParam();
  Barrier barrier(workers, spins);
  std::vector<int> written(workers);  // not atomic: a race shows under TSan
  std::atomic<int> wrong = 0;
  InThreads(workers, [&](int worker) {
    for (int generation = 1; generation <= 500; ++generation) {
      written[worker] = generation;
      barrier.Wait(worker);
      for (const int value : written) wrong += value != generation;
      barrier.Wait(worker);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(BarrierTest, WaitsForWhoeverComesLast) {
  const auto [workers, spins] = GetParam();
  for (int late = 0; late < workers; ++late) {
    Barrier barrier(workers, spins);
    std::atomic<bool> arrived = false;
    std::atomic<int> early = 0;
    InThreads(workers, [&, late = late](int worker) {
      if (worker == late) {
        // Long enough for the others to fall asleep.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        arrived = true;
      }
      barrier.Wait(worker);
      early += !arrived;
    });
    EXPECT_EQ(early, 0) << "worker " << late << " came last";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BarrierTest,
    testing::Combine(testing::Values(1, 2, 3, 5, 8),
                     testing::Values(0, 1, Barrier::kSpins)),
    [](const auto& info) {
      return std::to_string(std::get<0>(info.param)) + "Workers" +
             std::to_string(std::get<1>(info.param)) + "Spins";
    });

TEST(BarrierArriveTest, StandsInForAMissingWorker) {
  for (int waiting = 0; waiting < 3; ++waiting) {
    Barrier barrier(3, /*spins=*/1);
    for (int generation = 0; generation < 4; ++generation) {
      std::thread thread([&] { barrier.Wait(waiting); });
      barrier.Arrive((waiting + 1) % 3);
      barrier.Arrive((waiting + 2) % 3);
      thread.join();
    }
  }
}

}  // namespace
}  // namespace onestep
