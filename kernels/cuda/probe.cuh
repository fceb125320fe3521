// SPDX-License-Identifier: Apache-2.0
// See kernels/probe_launch.h.
#ifndef ONESTEP_KERNELS_CUDA_PROBE_CUH_
#define ONESTEP_KERNELS_CUDA_PROBE_CUH_

#include "kernels/cuda/device.h"

namespace onestep::cuda {

// Of one wait; a hop takes a microsecond.
inline constexpr uint64_t kProbeTimeoutNs = 1'000'000'000;

struct EmptyArgs {
  int32_t unused = 0;
};

template <bool kWaits>
ONESTEP_KERNEL(32)
void EmptyKernel(EmptyArgs) {
  if constexpr (kWaits) {
    dev::TriggerDependents();
    dev::WaitForPrerequisites();
  }
}

struct WhileArgs {
  uint64_t handle;
  uint32_t* count;
  uint32_t iterations;
};

template <int kThreads>
ONESTEP_KERNEL(kThreads)
void WhileKernel(WhileArgs args) {
  if (dev::ThreadIndex().x != 0) return;
  const uint32_t count = *args.count + 1;
  *args.count = count;
  dev::SetConditional(args.handle, count < args.iterations);
}

struct GridBarrierArgs {
  uint32_t* counter;
  int32_t rounds;
};

template <int kThreads>
ONESTEP_KERNEL(kThreads)
void GridBarrierKernel(GridBarrierArgs args) {
  for (int32_t i = 0; i < args.rounds; ++i) dev::SyncGrid(args.counter, i);
}

struct ClusterArgs {
  int32_t rounds;
};

template <int kThreads>
ONESTEP_KERNEL(kThreads)
void ClusterBarrierKernel(ClusterArgs args) {
  if constexpr (!dev::kHasClusters) {
    dev::Trap();
  } else {
    for (int32_t i = 0; i < args.rounds; ++i) dev::SyncCluster();
  }
}

// Of a block's shared memory: where the other block's bytes come in, what it
// sends, and the barrier that counts them.
struct PushShared {
  alignas(16) unsigned char inbox[16];
  alignas(16) unsigned char outbox[16];
  dev::Barrier barrier;
};

template <int kThreads>
ONESTEP_KERNEL(kThreads)
void PushKernel(ClusterArgs args) {
  if constexpr (!dev::kHasClusters) {
    dev::Trap();
  } else {
    auto* shared = reinterpret_cast<PushShared*>(dev::Shared());
    const uint32_t rank = dev::ClusterRank();
    const bool leads = dev::ThreadIndex().x == 0;
    if (leads) {
      for (unsigned char& byte : shared->outbox) byte = 1;
      dev::InitBarrier(&shared->barrier, 1);
      dev::FenceBarrierInit();
    }
    dev::FenceAsync();
    dev::SyncCluster();
    for (int32_t i = 0; leads && i < args.rounds; ++i) {
      dev::ArriveExpect(&shared->barrier, sizeof(shared->inbox));
      const auto push = [&] {
        dev::PushToBlock(shared->inbox, shared->outbox, sizeof(shared->inbox),
                         &shared->barrier, 1 - rank);
      };
      if (rank == 0) push();
      if (!dev::WaitParity(&shared->barrier, i & 1, kProbeTimeoutNs)) {
        dev::Trap();
      }
      if (rank == 1) push();
    }
    dev::SyncCluster();  // a block that is pushed to must not have ended
  }
}

struct FlagArgs {
  uint32_t *first, *second;  // of each block, what the other one counts up
  int32_t rounds;
};

template <int kThreads>
ONESTEP_KERNEL(kThreads)
void FlagKernel(FlagArgs args) {
  if (dev::ThreadIndex().x != 0) return;
  const uint32_t block = dev::BlockIndex().x;
  uint32_t* const mine = block == 0 ? args.first : args.second;
  uint32_t* const other = block == 0 ? args.second : args.first;
  const uint64_t end =
      dev::Nanoseconds() + kProbeTimeoutNs + args.rounds * uint64_t{100'000};
  for (int32_t i = 0; i < args.rounds; ++i) {
    if (block == 0) dev::AddRelease(other, 1);
    for (uint32_t spins = 1; dev::LoadAcquire(mine) != uint32_t(i) + 1;
         ++spins) {
      if (spins % 65536 == 0 && dev::Nanoseconds() > end) dev::Trap();
    }
    if (block == 1) dev::AddRelease(other, 1);
  }
}

struct CopyArgs {
  const float* x;
  float* y;
  int64_t groups;  // of 4
};

// One thread per 16 bytes, in turns.
template <int kThreads>
ONESTEP_KERNEL(kThreads)
void CopyKernel(CopyArgs args) {
  using Group = dev::Vec<float, 4>;
  const auto* x = reinterpret_cast<const Group*>(args.x);
  auto* y = reinterpret_cast<Group*>(args.y);
  const int64_t stride = int64_t{dev::GridDim().x} * kThreads;
  for (int64_t i =
           int64_t{dev::BlockIndex().x} * kThreads + dev::ThreadIndex().x;
       i < args.groups; i += stride) {
    y[i] = x[i];
  }
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_PROBE_CUH_
