// SPDX-License-Identifier: Apache-2.0
// The device layer as the emulator has it: what the calls compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "tests/cuda_emulator/device_emulated.h"
// After the layer itself.
#include "kernels/cuda/device.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

constexpr int kSeeds = 20;

struct ScaleArgs {
  const float* x;
  float* y;
  float alpha;
  int64_t n;
};

template <int kWidth, bool kAdd>
ONESTEP_KERNEL(96)
void Scale(ScaleArgs args) {
  const int64_t i =
      int64_t{dev::BlockIndex().x} * dev::BlockDim().x + dev::ThreadIndex().x;
  if (i * kWidth >= args.n) return;
  auto group = dev::LoadVec<kWidth>(args.x + i * kWidth);
  for (float& v : group.v) v = args.alpha * v + (kAdd ? 1 : 0);
  reinterpret_cast<dev::Vec<float, kWidth>*>(args.y)[i] = group;
}

TEST(DeviceTest, RunsEveryThreadOfEveryBlock) {
  std::vector<float> x(4000), y(4000), want(4000);
  std::iota(x.begin(), x.end(), 0);
  for (size_t i = 0; i < x.size(); ++i) want[i] = 2 * x[i] + 1;
  const ScaleArgs args = {x.data(), y.data(), 2, 4000};
  Launch launch = ONESTEP_LAUNCH((Scale<4, true>), args);
  EXPECT_STREQ(launch.name, "Scale<4,true>");
  launch.block.x = 96;
  launch.grid.x = 11;
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::fill(y.begin(), y.end(), -1);
    ASSERT_OK(Emulate(launch, seed));
    ASSERT_EQ(y, want);
  }
}

struct IndexArgs {
  uint32_t* y;  // [grid.size() * block.size(), 4]
};

ONESTEP_KERNEL(64) void Indices(IndexArgs args) {
  const Dim thread = dev::ThreadIndex(), dim = dev::BlockDim();
  const Dim block = dev::BlockIndex(), grid = dev::GridDim();
  const uint32_t i = (thread.z * dim.y + thread.y) * dim.x + thread.x;
  const uint32_t b = (block.z * grid.y + block.y) * grid.x + block.x;
  uint32_t* y = args.y + 4 * (b * dim.size() + i);
  y[0] = dev::Lane();
  y[1] = dev::Warp();
  y[2] = dev::ClusterRank();
  y[3] = dev::ClusterSize();
}

TEST(DeviceTest, NumbersThreadsAndBlocksWithXFastest) {
  std::vector<uint32_t> y(4 * 3 * 2 * 48 * 4, 99);
  const IndexArgs args = {y.data()};
  Launch launch = ONESTEP_LAUNCH(Indices, args);
  launch.grid = {4, 3, 2};
  launch.block = {4, 6, 2};
  launch.cluster = 2;
  ASSERT_OK(Emulate(launch, 1));
  for (uint32_t i = 0; i < y.size() / 4; ++i) {
    ASSERT_EQ(y[4 * i], i % 48 % 32);
    ASSERT_EQ(y[4 * i + 1], i % 48 / 32);
    ASSERT_EQ(y[4 * i + 2], i / 48 % 2);
    ASSERT_EQ(y[4 * i + 3], 2u);
  }
}

struct SumArgs {
  const float* x;  // [grid.x, block.x]
  float* y;        // [grid.x]
};

// A tree over the block, the first rounds in shared memory.
template <bool kSync>
ONESTEP_KERNEL(256)
void BlockSum(SumArgs args) {
  auto* sums = reinterpret_cast<float*>(dev::Shared());
  const uint32_t t = dev::ThreadIndex().x, block = dev::BlockIndex().x;
  sums[t] = args.x[block * 256 + t];
  for (uint32_t half = 128; half >= 32; half /= 2) {
    if (kSync) dev::SyncBlock();
    if (t < half) sums[t] += sums[t + half];
  }
  if (kSync) dev::SyncBlock();
  if (dev::Warp() != 0) return;
  float sum = sums[t];
  for (int mask = 16; mask > 0; mask /= 2) sum += dev::ShuffleXor(sum, mask);
  if (t == 0) args.y[block] = sum;
}

std::vector<float> RunBlockSum(bool sync, uint64_t seed) {
  std::vector<float> x(8 * 256), y(8, -1);
  std::iota(x.begin(), x.end(), 1);
  const SumArgs args = {x.data(), y.data()};
  Launch launch = sync ? ONESTEP_LAUNCH(BlockSum<true>, args)
                       : ONESTEP_LAUNCH(BlockSum<false>, args);
  launch.grid.x = 8;
  launch.block.x = 256;
  launch.shared_bytes = 256 * sizeof(float);
  EXPECT_OK(Emulate(launch, seed));
  return y;
}

TEST(DeviceTest, SumsOverABlock) {
  std::vector<float> want(8);
  for (int b = 0; b < 8; ++b) want[b] = 256 * (256 * b + 1 + 256 * b + 256) / 2;
  for (int seed = 0; seed < kSeeds; ++seed) {
    ASSERT_EQ(RunBlockSum(true, seed), want) << seed;
  }
}

TEST(DeviceTest, AMissingSyncBlockIsSeenInTheResults) {
  const std::vector<float> want = RunBlockSum(true, 0);
  int wrong = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    wrong += RunBlockSum(false, seed) != want;
  }
  EXPECT_EQ(wrong, kSeeds);
}

struct OrderArgs {
  uint32_t* count;  // [1]
  uint32_t* order;  // [grid.x * block.x]
};

ONESTEP_KERNEL(64) void Order(OrderArgs args) {
  const uint32_t t = dev::BlockIndex().x * 64 + dev::ThreadIndex().x;
  args.order[dev::AddAcqRel(args.count, 1)] = t;
}

TEST(DeviceTest, TheSeedDecidesTheOrder) {
  const auto order = [](uint64_t seed) {
    uint32_t count = 0;
    std::vector<uint32_t> order(4 * 64);
    const OrderArgs args = {&count, order.data()};
    Launch launch = ONESTEP_LAUNCH(Order, args);
    launch.grid.x = 4;
    launch.block.x = 64;
    EXPECT_OK(Emulate(launch, seed));
    return order;
  };
  EXPECT_EQ(order(3), order(3));
  EXPECT_NE(order(3), order(4));
  std::vector<uint32_t> sorted = order(3), all(4 * 64);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
}

struct ShuffleArgs {
  int32_t* y;  // [4, 64]
};

ONESTEP_KERNEL(64) void Shuffles(ShuffleArgs args) {
  const int32_t t = dev::ThreadIndex().x;
  args.y[t] = dev::Shuffle(100 + t, 5);
  args.y[64 + t] = dev::Shuffle(100 + t, (dev::Lane() + 1) % 32);
  args.y[128 + t] = dev::ShuffleXor(100 + t, 3);
  args.y[192 + t] = dev::AnyInWarp(t == 40);
}

TEST(DeviceTest, ShufflesStayInTheirWarp) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::vector<int32_t> y(4 * 64);
    const ShuffleArgs args = {y.data()};
    Launch launch = ONESTEP_LAUNCH(Shuffles, args);
    launch.block.x = 64;
    ASSERT_OK(Emulate(launch, seed));
    for (int t = 0; t < 64; ++t) {
      const int warp = t / 32 * 32;
      ASSERT_EQ(y[t], 100 + warp + 5);
      ASSERT_EQ(y[64 + t], 100 + warp + (t + 1) % 32);
      ASSERT_EQ(y[128 + t], 100 + (t ^ 3));
      ASSERT_EQ(y[192 + t], t >= 32);
    }
  }
}

struct MmaArgs {
  const float *a, *b, *c;  // [16,16], [16,8], [16,8]
  float* d;                // [16,8]
};

// The fragments as the PTX ISA has them, "Matrix Fragments for mma.m16n8k16
// with floating point type": by element i of the fragment and lane,
//   a: row = groupID, + 8 for i in {2,3,6,7}; col = threadID_in_group * 2 +
//      (i & 1), + 8 for i >= 4
//   b: row = threadID_in_group * 2 + (i & 1), + 8 for i >= 2; col = groupID
//   c: row = groupID, + 8 for i >= 2; col = threadID_in_group * 2 + (i & 1)
ONESTEP_KERNEL(32) void Mma(MmaArgs args) {
  const int group = dev::Lane() >> 2, in_group = dev::Lane() & 3;
  float a[8], b[4], d[4];
  for (int i = 0; i < 8; ++i) {
    const int row = group + (i == 2 || i == 3 || i >= 6 ? 8 : 0);
    a[i] = args.a[row * 16 + in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)];
  }
  for (int i = 0; i < 4; ++i) {
    b[i] = args.b[(in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)) * 8 + group];
  }
  const auto at = [&](int i) {
    return (group + (i >= 2 ? 8 : 0)) * 8 + in_group * 2 + (i & 1);
  };
  for (int i = 0; i < 4; ++i) d[i] = args.c[at(i)];
  uint32_t packed_a[4], packed_b[2];
  for (int i = 0; i < 4; ++i) {
    packed_a[i] = dev::PackBf16(a[2 * i], a[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    packed_b[i] = dev::PackBf16(b[2 * i], b[2 * i + 1]);
  }
  dev::MmaBf16(d, packed_a, packed_b);
  for (int i = 0; i < 4; ++i) args.d[at(i)] = d[i];
}

TEST(DeviceTest, MmaIsAMatmulOfTheFragmentsOfThePtxIsa) {
  std::mt19937 random(1);
  // Small integers: exact in bf16, and their sums in fp32.
  const auto fill = [&](std::vector<float>& v) {
    for (float& x : v) x = static_cast<int>(random() % 255) - 127;
  };
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::vector<float> a(16 * 16), b(16 * 8), c(16 * 8), d(16 * 8);
    fill(a), fill(b), fill(c);
    const MmaArgs args = {a.data(), b.data(), c.data(), d.data()};
    Launch launch = ONESTEP_LAUNCH(Mma, args);
    launch.block.x = 32;
    ASSERT_OK(Emulate(launch, seed));
    std::vector<float> want = c;
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) {
        for (int k = 0; k < 16; ++k) {
          want[i * 8 + j] += a[i * 16 + k] * b[k * 8 + j];
        }
      }
    }
    ASSERT_EQ(d, want);
  }
}

TEST(DeviceTest, Bf16RoundsToNearestEven) {
  const auto round = [](uint32_t bits) {
    return dev::PackBf16(std::bit_cast<float>(bits), 0);
  };
  EXPECT_EQ(round(0x3f800000), 0x3f80u);  // 1
  EXPECT_EQ(round(0x3f807fff), 0x3f80u);
  EXPECT_EQ(round(0x3f808000), 0x3f80u);  // a tie, down to even
  EXPECT_EQ(round(0x3f808001), 0x3f81u);
  EXPECT_EQ(round(0x3f818000), 0x3f82u);  // a tie, up to even
  EXPECT_EQ(round(0xbf818000), 0xbf82u);
  EXPECT_EQ(round(0x80000000), 0x8000u);  // -0
  EXPECT_EQ(round(0x7f7fffff), 0x7f80u);  // overflows to infinity
  EXPECT_EQ(round(0x7f800000), 0x7f80u);  // infinity
  EXPECT_EQ(round(0xff800000), 0xff80u);
  EXPECT_EQ(round(0x7f800001), 0x7fffu);  // NaN stays one
  EXPECT_EQ(round(0xffffffff), 0x7fffu);
  EXPECT_EQ(round(0x00018000), 0x0002u);  // a denormal tie
  EXPECT_EQ(dev::PackBf16(1, -2), 0xc0003f80u);
}

TEST(DeviceTest, Bf16ToFloatTakesTheLowHalf) {
  EXPECT_EQ(dev::Bf16ToFloat(0xc0003f80u), 1);
  EXPECT_EQ(dev::Bf16ToFloat(0xc0003f80u >> 16), -2);
}

TEST(DeviceTest, MaxAndMinGiveTheNumberWhereOneIsNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(dev::Max(nan, 1.0f), 1);
  EXPECT_EQ(dev::Max(1.0f, nan), 1);
  EXPECT_EQ(dev::Min(nan, 1.0f), 1);
  EXPECT_EQ(dev::Min(1.0f, nan), 1);
  EXPECT_EQ(dev::Max(2.0f, 3.0f), 3);
  EXPECT_EQ(dev::Min(2, 3), 2);
}

struct NanArgs {
  int32_t* nans;  // [1]
};

ONESTEP_KERNEL(32) void CountNans(NanArgs args) {
  const auto* shared = reinterpret_cast<const float*>(dev::Shared());
  const int32_t own = std::isnan(shared[dev::Lane()]);
  int32_t sum = own;
  for (int mask = 16; mask > 0; mask /= 2) sum += dev::ShuffleXor(sum, mask);
  if (dev::Lane() == 0) *args.nans = sum;
}

TEST(DeviceTest, SharedMemoryBeginsAsNan) {
  int32_t nans = 0;
  const NanArgs args = {&nans};
  Launch launch = ONESTEP_LAUNCH(CountNans, args);
  launch.block.x = 32;
  launch.shared_bytes = 128;
  ASSERT_OK(Emulate(launch, 1));
  EXPECT_EQ(nans, 32);
}

}  // namespace
}  // namespace onestep
