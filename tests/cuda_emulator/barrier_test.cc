// SPDX-License-Identifier: Apache-2.0
// Clusters, transaction barriers and bulk copies, as the emulator has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/cuda_emulator/device_emulated.h"
// After the layer itself.
#include "kernels/cuda/device.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::HasSubstr;

constexpr int kSeeds = 20;
constexpr uint64_t kNever = UINT64_MAX;
constexpr auto kInternal = absl::StatusCode::kInternal;

struct PartsArgs {
  float* y;  // [grid.x, kParts]
  int32_t steps;
  int32_t sources;  // 2; with 1 a part is overwritten while it is under way
};
constexpr int kParts = 64, kCluster = 16;

// Each step every block pushes a part to all blocks of its cluster, and begins
// the next with the sum of what it got.
struct PartsMemory {
  alignas(16) float own[2][kParts];
  alignas(16) float inbox[2][kCluster][kParts];
  dev::Barrier arrived[2];
};

ONESTEP_KERNEL(kParts) void PushParts(PartsArgs args) {
  auto& memory = *reinterpret_cast<PartsMemory*>(dev::Shared());
  const uint32_t t = dev::ThreadIndex().x, rank = dev::ClusterRank();
  const uint32_t ranks = dev::ClusterSize();
  if (t < 2) dev::InitBarrier(&memory.arrived[t], 1);
  dev::FenceBarrierInit();
  dev::SyncCluster();
  float value = rank + t;
  for (int step = 0; step < args.steps; ++step) {
    float* own = memory.own[step % args.sources];
    dev::Barrier* arrived = &memory.arrived[step % 2];
    own[t] = value;
    dev::FenceAsync();
    dev::SyncBlock();
    if (t == 0) dev::ArriveExpect(arrived, ranks * sizeof(float) * kParts);
    if (t < ranks) {
      dev::PushToBlock(memory.inbox[step % 2][rank], own,
                       sizeof(float) * kParts, arrived, t);
    }
    if (!dev::WaitParity(arrived, step / 2 % 2, kNever)) dev::Trap();
    float sum = 0;
    for (uint32_t r = 0; r < ranks; ++r) sum += memory.inbox[step % 2][r][t];
    value = sum / 16 + rank;
  }
  dev::SyncCluster();
  args.y[dev::BlockIndex().x * kParts + t] = value;
}

std::vector<float> RunPushParts(int sources, uint64_t seed) {
  constexpr int kBlocks = 2 * kCluster;
  std::vector<float> y(kBlocks * kParts, -1);
  const PartsArgs args = {y.data(), 20, sources};
  Launch launch = ONESTEP_LAUNCH(PushParts, args);
  launch.grid.x = kBlocks;
  launch.block.x = kParts;
  launch.cluster = kCluster;
  launch.shared_bytes = sizeof(PartsMemory);
  EXPECT_OK(Emulate(launch, seed));
  return y;
}

std::vector<float> WantPushParts() {
  std::vector<float> y;
  for (int block = 0; block < 2 * kCluster; ++block) {
    for (int t = 0; t < kParts; ++t) {
      std::vector<float> values(kCluster);
      for (int r = 0; r < kCluster; ++r) values[r] = r + t;
      for (int step = 0; step < 20; ++step) {
        float sum = 0;
        for (const float v : values) sum += v;
        for (int r = 0; r < kCluster; ++r) values[r] = sum / 16 + r;
      }
      y.push_back(values[block % kCluster]);
    }
  }
  return y;
}

TEST(BarrierTest, BlocksOfAClusterPushToOneAnother) {
  const std::vector<float> want = WantPushParts();
  for (int seed = 0; seed < kSeeds; ++seed) {
    ASSERT_EQ(RunPushParts(/*sources=*/2, seed), want) << seed;
  }
}

TEST(BarrierTest, ASourceOverwrittenTooEarlyIsSeenInTheResults) {
  const std::vector<float> want = WantPushParts();
  int wrong = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    wrong += RunPushParts(/*sources=*/1, seed) != want;
  }
  EXPECT_GT(wrong, kSeeds / 2);
}

struct LoadArgs {
  const float* x;  // [grid.x, 256]
  float* y;        // [grid.x, 256]
  bool waits;
};

ONESTEP_KERNEL(128) void LoadByBulk(LoadArgs args) {
  auto* values = reinterpret_cast<float*>(dev::Shared());
  auto* loaded = reinterpret_cast<dev::Barrier*>(dev::Shared() + 1024);
  const uint32_t t = dev::ThreadIndex().x, row = 256 * dev::BlockIndex().x;
  if (t == 0) {
    dev::InitBarrier(loaded, 1);
    dev::FenceBarrierInit();
  }
  dev::SyncBlock();
  if (t == 0) {
    dev::ArriveExpect(loaded, 1024);
    dev::BulkLoad(values, args.x + row, 512, loaded);
    dev::BulkLoad(values + 128, args.x + row + 128, 512, loaded);
  }
  if (args.waits) dev::WaitParity(loaded, 0, kNever);
  for (uint32_t i = t; i < 256; i += 128) args.y[row + i] = 2 * values[i];
  dev::WaitParity(loaded, 0, kNever);
}

std::vector<float> RunLoadByBulk(bool waits, uint64_t seed) {
  std::vector<float> x(8 * 256), y(8 * 256, -1);
  std::iota(x.begin(), x.end(), 0);
  const LoadArgs args = {x.data(), y.data(), waits};
  Launch launch = ONESTEP_LAUNCH(LoadByBulk, args);
  launch.grid.x = 8;
  launch.block.x = 128;
  launch.shared_bytes = 1024 + 8;
  EXPECT_OK(Emulate(launch, seed));
  return y;
}

TEST(BarrierTest, LoadsByBulk) {
  std::vector<float> want(8 * 256);
  for (size_t i = 0; i < want.size(); ++i) want[i] = 2 * i;
  for (int seed = 0; seed < kSeeds; ++seed) {
    ASSERT_EQ(RunLoadByBulk(/*waits=*/true, seed), want) << seed;
    ASSERT_NE(RunLoadByBulk(/*waits=*/false, seed), want) << seed;
  }
}

// Threads that do with a barrier what the test says.
struct ScriptArgs {
  void (*script)(dev::Barrier* barrier);
};
ONESTEP_KERNEL(32) void Script(ScriptArgs args) {
  dev::FenceAsync();
  args.script(reinterpret_cast<dev::Barrier*>(dev::Shared()));
}
absl::Status RunScript(void (*script)(dev::Barrier* barrier),
                       uint32_t threads = 1) {
  const ScriptArgs args = {script};
  Launch launch = ONESTEP_LAUNCH(Script, args);
  launch.block.x = threads;
  launch.shared_bytes = 1024;
  return Emulate(launch, 1);
}
void Want(bool holds) {
  if (!holds) dev::Trap();
}

TEST(BarrierTest, APhaseEndsWithItsLastArrivalAndItsLastByte) {
  EXPECT_OK(RunScript([](dev::Barrier* barrier) {
    unsigned char* shared = dev::Shared();
    dev::InitBarrier(barrier, 2);
    Want(dev::WaitParity(barrier, 1, 0));  // of the phase before the first
    Want(!dev::WaitParity(barrier, 0, 100));
    dev::ArriveExpect(barrier, 0);
    Want(!dev::WaitParity(barrier, 0, 100));
    dev::ArriveExpect(barrier, 32);
    Want(!dev::WaitParity(barrier, 0, 100));  // 32 bytes are to come
    dev::PushToBlock(shared + 64, shared + 128, 16, barrier, 0);
    Want(!dev::WaitParity(barrier, 0, 100));
    dev::PushToBlock(shared + 80, shared + 144, 16, barrier, 0);
    Want(dev::WaitParity(barrier, 0, kNever));
    Want(!dev::WaitParity(barrier, 1, 100));  // the second phase goes on
    dev::ArriveExpect(barrier, 0);
    dev::ArriveExpect(barrier, 0);
    Want(dev::WaitParity(barrier, 1, 0));
    Want(!dev::WaitParity(barrier, 0, 100));
  }));
}

TEST(BarrierTest, BytesMayComeBeforeTheyAreAnnounced) {
  EXPECT_OK(RunScript([](dev::Barrier* barrier) {
    unsigned char* shared = dev::Shared();
    dev::InitBarrier(barrier, 1);
    dev::PushToBlock(shared + 64, shared + 128, 16, barrier, 0);
    Want(!dev::WaitParity(barrier, 0, 1000));
    Want(barrier->bytes == -16);
    dev::ArriveExpect(barrier, 16);
    Want(dev::WaitParity(barrier, 0, 0));
  }));
}

TEST(BarrierTest, ReportsWrongUse) {
  const auto reports = [](void (*script)(dev::Barrier*), const char* what) {
    EXPECT_THAT(RunScript(script), StatusIs(kInternal, HasSubstr(what)));
  };
  reports([](dev::Barrier* b) { dev::ArriveExpect(b, 0); },
          "Script: thread 0,0,0 of block 0,0,0: ArriveExpect before "
          "InitBarrier");
  reports([](dev::Barrier* b) { dev::WaitParity(b, 0, 1); },
          "WaitParity before InitBarrier");
  reports([](dev::Barrier* b) { dev::InitBarrier(b, 0); },
          "want arrivals in [1,2^20)");
  reports([](dev::Barrier* b) { dev::InitBarrier(b + 128, 1); },
          "InitBarrier: shared bytes 1024 to 1032 of 1024");
  reports(
      [](dev::Barrier* b) {
        dev::InitBarrier(b, 1);
        dev::ArriveExpect(b, 16);
        dev::ArriveExpect(b, 16);
      },
      "ArriveExpect: more arrivals than the phase has");
  reports(
      [](dev::Barrier* b) {
        dev::InitBarrier(b, 1);
        dev::PushToBlock(dev::Shared() + 64, dev::Shared() + 8, 16, b, 0);
      },
      "PushToBlock: want addresses and bytes in sixteens");
  reports(
      [](dev::Barrier* b) {
        dev::InitBarrier(b, 1);
        dev::PushToBlock(dev::Shared() + 64, dev::Shared() + 16, 24, b, 0);
      },
      "PushToBlock: want addresses and bytes in sixteens");
  reports(
      [](dev::Barrier* b) {
        dev::InitBarrier(b, 1);
        dev::PushToBlock(dev::Shared() + 1008, dev::Shared() + 16, 32, b, 0);
      },
      "PushToBlock to: shared bytes 1008 to 1040 of 1024");
  reports(
      [](dev::Barrier* b) {
        dev::InitBarrier(b, 1);
        dev::PushToBlock(dev::Shared() + 64, dev::Shared() + 16, 16, b, 1);
      },
      "PushToBlock: rank 1 of a cluster of 1");
  reports(
      [](dev::Barrier* b) {
        dev::PushToBlock(dev::Shared() + 64, dev::Shared() + 16, 16, b, 0);
        while (true) dev::Nanoseconds();
      },
      "a bulk copy came to a barrier without InitBarrier");
  reports(
      [](dev::Barrier* b) {
        dev::InitBarrier(b, 1);
        dev::ArriveExpect(b, 16);
        dev::PushToBlock(dev::Shared() + 64, dev::Shared() + 16, 16, b, 0);
      },
      "was under way when one of them ended");
}

// Fences and meets in the order of `steps`, then pushes new bytes.
struct FenceArgs {
  const char* steps;
};
ONESTEP_KERNEL(64) void Fences(FenceArgs args) {
  auto* values = reinterpret_cast<float*>(dev::Shared());
  auto* barrier = reinterpret_cast<dev::Barrier*>(dev::Shared() + 512);
  const uint32_t t = dev::ThreadIndex().x;
  if (t == 0) dev::InitBarrier(barrier, 1);
  for (const char* step = args.steps; *step != 0; ++step) {
    if (*step == 'b') dev::FenceBarrierInit();
    if (*step == 'w') values[t] = static_cast<float>(step - args.steps);
    if (*step == 'f') dev::FenceAsync();
    if (*step == 's') dev::SyncBlock();
    if (*step == 'c') dev::SyncCluster();
    if (*step == 'p' && t == 40) {
      dev::PushToBlock(values + 64, values, 256, barrier, 0);
    }
    if (*step == 'a') {
      if (t == 0) dev::ArriveExpect(barrier, 256);
      dev::WaitParity(barrier, step[1] - '0', kNever);
    }
  }
}
absl::Status RunFences(const char* steps) {
  const FenceArgs args = {steps};
  Launch launch = ONESTEP_LAUNCH(Fences, args);
  launch.block.x = 64;
  launch.shared_bytes = 1024;
  return Emulate(launch, 1);
}

TEST(BarrierTest, FindsAPushWithoutFence) {
  EXPECT_OK(RunFences("bwfspa0swfspa1"));
  EXPECT_OK(RunFences("bwfcpa0swfcpa1"));
  const auto unfenced =
      StatusIs(kInternal, HasSubstr("thread 40,0,0 of block 0,0,0: PushToBlock "
                                    "of bytes without FenceAsync"));
  EXPECT_THAT(RunFences("bwspa0"), unfenced);
  EXPECT_THAT(RunFences("bwfspa0swspa1"), unfenced);
}

TEST(BarrierTest, FindsABarrierWithoutFence) {
  EXPECT_THAT(RunFences("wfs"),
              StatusIs(kInternal, HasSubstr("at SyncBlock after InitBarrier "
                                            "without FenceBarrierInit")));
  EXPECT_THAT(RunFences("wfc"),
              StatusIs(kInternal, HasSubstr("at SyncCluster after InitBarrier "
                                            "without FenceBarrierInit")));
}

TEST(BarrierTest, ADeadlockNamesTheBarrier) {
  EXPECT_THAT(RunScript([](dev::Barrier* barrier) {
                dev::InitBarrier(barrier + 1, 3);
                dev::ArriveExpect(barrier + 1, 48);
                dev::WaitParity(barrier + 1, 0, kNever);
              }),
              StatusIs(kInternal,
                       HasSubstr("Script: deadlock: waiting: 1 of block 0,0,0 "
                                 "at WaitParity(shared + 8, parity 0), pending "
                                 "2 arrivals and 48 bytes")));
}

TEST(BarrierTest, WhoSleepsThroughTwoPhasesWaitsOn) {
  EXPECT_THAT(
      RunScript(
          [](dev::Barrier* barrier) {
            const bool waits = dev::ThreadIndex().x == 1;
            if (!waits) dev::InitBarrier(barrier, 1);
            dev::FenceBarrierInit();
            dev::SyncBlock();
            if (waits) dev::WaitParity(barrier, 0, kNever);
            for (int i = 0; i < 100; ++i) dev::Nanoseconds();
            dev::ArriveExpect(barrier, 0);
            dev::ArriveExpect(barrier, 0);
          },
          /*threads=*/2),
      StatusIs(kInternal,
               HasSubstr("deadlock: waiting: 1 of block 0,0,0 at "
                         "WaitParity(shared + 0, parity 0), pending 1")));
}

TEST(BarrierTest, WaitingTakesItsTimeOut) {
  EXPECT_OK(RunScript([](dev::Barrier* barrier) {
    dev::InitBarrier(barrier, 1);
    const uint64_t begin = dev::Nanoseconds();
    Want(!dev::WaitParity(barrier, 0, 2'000'000'000));
    Want(dev::Nanoseconds() - begin >= 2'000'000'000);
    while (dev::Nanoseconds() - begin < 60'000'000'000) {
    }
  }));
}

}  // namespace
}  // namespace onestep
