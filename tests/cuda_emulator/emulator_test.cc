// SPDX-License-Identifier: Apache-2.0
// What the emulator refuses and what it finds.
#include "tests/cuda_emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tests/cuda_emulator/device_emulated.h"
// After the layer itself.
#include "kernels/cuda/device.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::HasSubstr;

constexpr int kSeeds = 20;
constexpr auto kInternal = absl::StatusCode::kInternal;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Every thread does what the test says.
struct ScriptArgs {
  void (*script)(uint32_t* memory);
  uint32_t* memory;
};
ONESTEP_KERNEL(1024) void Script(ScriptArgs args) { args.script(args.memory); }

Launch ScriptLaunch(uint32_t threads, void (*script)(uint32_t*),
                    uint32_t* memory = nullptr) {
  const ScriptArgs args = {script, memory};
  Launch launch = ONESTEP_LAUNCH(Script, args);
  launch.block.x = threads;
  return launch;
}

void ExpectFound(uint32_t threads, void (*script)(uint32_t*),
                 const char* what) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    EXPECT_THAT(Emulate(ScriptLaunch(threads, script), seed),
                StatusIs(kInternal, HasSubstr(what)))
        << seed;
  }
}

uint32_t Thread() { return dev::ThreadIndex().x; }

TEST(EmulatorTest, FindsThreadsThatWaitAtDifferentCalls) {
  ExpectFound(
      64,
      [](uint32_t*) {
        if (dev::Warp() == 0) {
          dev::SyncBlock();
        } else {
          dev::SyncCluster();
        }
      },
      "Script: deadlock: waiting: 32 of block 0,0,0 at SyncBlock; 32 of block "
      "0,0,0 at SyncCluster");
}

TEST(EmulatorTest, FindsAThreadThatEndsWithoutSyncBlock) {
  ExpectFound(
      64,
      [](uint32_t*) {
        if (Thread() != 40) dev::SyncBlock();
        // The others are there by then.
        for (int i = 0; i < 30; ++i) dev::Nanoseconds();
      },
      "thread 40,0,0 of block 0,0,0: ended while others wait at SyncBlock");
  ExpectFound(
      64,
      [](uint32_t*) {
        if (Thread() == 40) return;
        for (int i = 0; i < 30; ++i) dev::Nanoseconds();
        dev::SyncBlock();
      },
      "at SyncBlock, which other threads ended without");
}

TEST(EmulatorTest, FindsAShuffleThatALaneMisses) {
  ExpectFound(
      64,
      [](uint32_t*) {
        if (Thread() != 7) dev::ShuffleXor(1, 1);
      },
      "at ShuffleXor");
  ExpectFound(
      32,
      [](uint32_t*) {
        if (Thread() == 7) {
          dev::SyncWarp();
        } else {
          dev::Shuffle(1, 1);
        }
      },
      "while others wait at S");
  ExpectFound(
      32,
      [](uint32_t*) {
        if (Thread() == 7) dev::SyncBlock();
        dev::AnyInWarp(true);
      },
      "deadlock: waiting: 31 of block 0,0,0 at AnyInWarp; 1 of block 0,0,0 at "
      "SyncBlock");
}

TEST(EmulatorTest, FindsAShuffleInPartOfAWarp) {
  ExpectFound(
      40, [](uint32_t*) { dev::Shuffle(1, 1); },
      "at Shuffle in a warp of 8 threads");
}

TEST(EmulatorTest, FindsATrapAndItsThread) {
  ExpectFound(
      64,
      [](uint32_t*) {
        if (Thread() == 40) dev::Trap();
        dev::SyncBlock();
      },
      "Script: thread 40,0,0 of block 0,0,0: Trap; waiting: ");
}

TEST(EmulatorTest, FindsWritesPastSharedMemory) {
  Launch launch = ScriptLaunch(32, [](uint32_t* memory) {
    if (Thread() == 0) dev::Shared()[25 * 4 + *memory] = 1;
  });
  launch.shared_bytes = 100;
  for (const uint32_t past : {0, 200, -101, -300}) {
    uint32_t at = past;
    const ScriptArgs args = {[](uint32_t* memory) {
                               const auto offset =
                                   static_cast<int32_t>(*memory);
                               if (Thread() == 0)
                                 dev::Shared()[100 + offset] = 1;
                             },
                             &at};
    launch.SetArgs(args);
#ifdef __SANITIZE_ADDRESS__
    EXPECT_DEATH(Emulate(launch, 1).IgnoreError(), "use-after-poison");
#else
    EXPECT_THAT(
        Emulate(launch, 1),
        StatusIs(kInternal, HasSubstr("block 0,0,0 wrote outside its shared "
                                      "memory of 100 bytes")));
#endif
  }
}

#ifndef __SANITIZE_ADDRESS__  // which finds it first
[[gnu::noinline]] void FillLargeFrame() {
  volatile char large[64 << 10];
  for (volatile char& c : large) c = 1;
}

TEST(EmulatorTest, FindsAStackThatOverflows) {
  const Launch launch = ScriptLaunch(32, [](uint32_t*) {
    if (Thread() != 5) return;
    // The others have ended by then.
    for (int i = 0; i < 100; ++i) dev::Nanoseconds();
    FillLargeFrame();
  });
  EXPECT_THAT(Emulate(launch, 1),
              StatusIs(kInternal, HasSubstr("stack overflowed")));
}
#endif

TEST(EmulatorTest, FindsUnalignedLoads) {
  ExpectFound(
      32,
      [](uint32_t*) {
        alignas(16) static const float x[8] = {};
        dev::LoadVec<4>(x + 1);
      },
      "want 16-byte alignment");
}

TEST(EmulatorTest, FindsALaunchThatDoesNotWaitThoughItSays) {
  Launch launch = ScriptLaunch(32, [](uint32_t*) {});
  launch.waits = true;
  EXPECT_THAT(
      Emulate(launch, 1),
      StatusIs(kInternal, HasSubstr("ended without WaitForPrerequisites")));
  launch = ScriptLaunch(32, [](uint32_t*) {
    dev::WaitForPrerequisites();
    dev::TriggerDependents();
  });
  launch.waits = true;
  EXPECT_OK(Emulate(launch, 1));
}

// Each block waits for its neighbour.
void MeetNeighbour(uint32_t* arrived) {
  if (Thread() == 0) {
    dev::StoreSystem(&arrived[dev::BlockIndex().x], 1);
    while (dev::LoadSystem(&arrived[dev::BlockIndex().x ^ 1]) == 0) {
    }
  }
  dev::SyncBlock();
}

int DeadlocksOfMeetNeighbour(uint32_t cluster) {
  int deadlocks = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    uint32_t arrived[2] = {};
    Launch launch = ScriptLaunch(64, &MeetNeighbour, arrived);
    launch.grid.x = 2;
    launch.cluster = cluster;
    const absl::Status status = Emulate(launch, seed);
    if (status.ok()) continue;
    EXPECT_THAT(status, StatusIs(kInternal, HasSubstr("at LoadSystem of ")));
    ++deadlocks;
  }
  return deadlocks;
}

TEST(EmulatorTest, BlocksOfAnOrdinaryLaunchAreNotAllResident) {
  EXPECT_GT(DeadlocksOfMeetNeighbour(1), kSeeds / 4);
}

TEST(EmulatorTest, BlocksOfAClusterAreResidentTogether) {
  EXPECT_EQ(DeadlocksOfMeetNeighbour(2), 0);
}

TEST(EmulatorTest, TellsTheHost) {
  uint32_t signals[2] = {7, 0};
  const Launch launch = ScriptLaunch(
      1,
      [](uint32_t* signals) {
        dev::StoreSystem(&signals[1], dev::LoadSystem(&signals[0]) + 1);
      },
      signals);
  EXPECT_OK(Emulate(launch, 1));
  EXPECT_EQ(signals[1], 8u);
}

constexpr int kSmall = 96;
ONESTEP_KERNEL(kSmall) void SmallBlocks(ScriptArgs) {}

TEST(EmulatorTest, RefusesWhatADeviceWould) {
  const ScriptArgs args = {};
  Launch good = ONESTEP_LAUNCH(SmallBlocks, args);
  good.grid = {.x = 32, .y = 2};
  good.block.x = 96;
  good.cluster = 16;
  good.shared_bytes = 232448;
  EXPECT_OK(Emulate(good, 1));
  const auto refuses = [&](auto change, const char* what) {
    Launch launch = good;
    change(launch);
    EXPECT_THAT(Emulate(launch, 1),
                StatusIs(kInvalidArgument, HasSubstr(what)));
  };
#ifndef __clang__
  refuses([](Launch& l) { l.block.x = 97; }, "at most 96 threads");
#endif
  refuses([](Launch& l) { l.block.x = 1025; }, "block 1025,1,1, want at most");
  refuses([](Launch& l) { l.block.x = 0; }, "empty grid 32,2,1 or block 0,1,1");
  refuses([](Launch& l) { l.grid.y = 0; }, "empty grid 32,0,1");
  refuses([](Launch& l) { l.grid.y = 65536; }, "too large");
  refuses([](Launch& l) { l.grid.x = 40; }, "cluster 16 of grid 40,2,1");
  refuses([](Launch& l) { l.cluster = 32; }, "cluster 32");
  refuses([](Launch& l) { l.cluster = 0; }, "cluster 0");
  refuses([](Launch& l) { l.shared_bytes += 1; },
          "232449 bytes of shared memory, want at most 232448");
  refuses([](Launch& l) { l.args_bytes = 1025; }, "1025 bytes of arguments");
  refuses([](Launch& l) { l.emulated = nullptr; }, "ONESTEP_LAUNCH");
}

// CUDA, the emulated one too, sees a kernel's arguments as bytes.
TEST(LaunchTest, ArgumentsHaveNothingBetweenTheirMembers) {
  struct Gap {
    uint8_t a;
    const void* b;
  };
  alignas(Gap) unsigned char bytes[sizeof(Gap)];
  std::memset(bytes, 0xff, sizeof(bytes));
  Gap* const gap = new (bytes) Gap;
  gap->a = 3;
  gap->b = nullptr;
  Launch launch;
  launch.SetArgs(*gap);
  EXPECT_EQ(launch.args[0], 3);
  for (size_t i = 1; i < sizeof(Gap); ++i) EXPECT_EQ(launch.args[i], 0) << i;
}

}  // namespace
}  // namespace onestep
