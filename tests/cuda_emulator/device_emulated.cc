// SPDX-License-Identifier: Apache-2.0
// What the threads of a kernel call.
#include "tests/cuda_emulator/device_emulated.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda_emulator/emulation.h"

namespace onestep {
namespace {

// A call that all 32 lanes make together: the last to come runs `apply`.
template <typename Apply>
void WholeWarp(const char* at, Apply apply) {
  WarpThreads& warp = *emulation->self().warp;
  if (warp.lanes.size() != 32) {
    emulation->Fail(absl::StrCat("at ", at, " in a warp of ", warp.lanes.size(),
                                 " threads"));
  }
  if (emulation->Arrive(warp.meeting, 32, at)) {
    apply(warp.lanes);
    emulation->Open(warp.meeting);
  }
}

void CheckBarrierFence(const char* at) {
  if (emulation->self().owes_barrier_fence) {
    emulation->Fail(
        absl::StrCat("at ", at, " after InitBarrier without FenceBarrierInit"));
  }
}

}  // namespace

namespace dev {

void SyncBlock() {
  Block& block = *emulation->self().block;
  const Dim& dim = emulation->self().self.block_dim;
  CheckBarrierFence("SyncBlock");
  if (emulation->Arrive(block.meeting, dim.size(), "SyncBlock")) {
    block.synced_fences = block.fences;
    emulation->Open(block.meeting);
  }
}

void SyncCluster() {
  Thread& self = emulation->self();
  Cluster& cluster = *self.block->cluster;
  CheckBarrierFence("SyncCluster");
  if (emulation->Arrive(cluster.meeting,
                        self.self.block_dim.size() * self.self.cluster_size,
                        "SyncCluster")) {
    for (Block* block : cluster.blocks) block->synced_fences = block->fences;
    emulation->Open(cluster.meeting);
  }
}

void SyncWarp() {
  WarpThreads& warp = *emulation->self().warp;
  if (emulation->Arrive(warp.meeting, warp.lanes.size(), "SyncWarp")) {
    emulation->Open(warp.meeting);
  }
}

uint32_t ShuffleXorBits(uint32_t v, int mask) {
  Thread& self = emulation->self();
  self.in = v;
  self.argument = mask;
  if (mask < 0 || mask > 31) emulation->Fail("ShuffleXor: want mask in [0,32)");
  WholeWarp("ShuffleXor", [](const std::vector<Thread*>& lanes) {
    for (int i = 0; i < 32; ++i) {
      lanes[i]->out = lanes[i ^ lanes[i]->argument]->in;
    }
  });
  return self.out;
}

uint32_t ShuffleBits(uint32_t v, int lane) {
  Thread& self = emulation->self();
  self.in = v;
  self.argument = lane;
  if (lane < 0 || lane > 31) emulation->Fail("Shuffle: want lane in [0,32)");
  WholeWarp("Shuffle", [](const std::vector<Thread*>& lanes) {
    for (Thread* lane : lanes) lane->out = lanes[lane->argument]->in;
  });
  return self.out;
}

bool AnyInWarp(bool v) {
  Thread& self = emulation->self();
  self.in = v;
  WholeWarp("AnyInWarp", [](const std::vector<Thread*>& lanes) {
    uint32_t any = 0;
    for (const Thread* lane : lanes) any |= lane->in;
    for (Thread* lane : lanes) lane->out = any;
  });
  return self.out != 0;
}

void MmaBf16(float d[4], const uint32_t a[4], const uint32_t b[2]) {
  Thread& self = emulation->self();
  self.d = d;
  self.a = a;
  self.b = b;
  WholeWarp("MmaBf16", [](const std::vector<Thread*>& lanes) {
    float ma[16][16], mb[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int half = 0; half < 2; ++half) {
        const auto part = [half](uint32_t v) {
          return Bf16ToFloat(half == 0 ? v & 0xffff : v >> 16);
        };
        const Thread& own = *lanes[lane];
        for (int i = 0; i < 4; ++i) {
          ma[g + i % 2 * 8][2 * t + i / 2 * 8 + half] = part(own.a[i]);
        }
        for (int i = 0; i < 2; ++i)
          mb[2 * t + i * 8 + half][g] = part(own.b[i]);
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        float sum = lanes[lane]->d[i];
        for (int k = 0; k < 16; ++k) sum += ma[row][k] * mb[k][column];
        lanes[lane]->d[i] = sum;
      }
    }
  });
}

void InitBarrier(Barrier* barrier, uint32_t arrivals) {
  emulation->Change();
  emulation->CheckShared(*emulation->self().block, barrier, sizeof(Barrier),
                         "InitBarrier");
  CheckAligned(barrier, sizeof(Barrier));
  if (arrivals < 1 || arrivals > kMaxBarrierCount) {
    emulation->Fail("InitBarrier: want arrivals in [1,2^20)");
  }
  *barrier = {.expected = arrivals,
              .pending = arrivals,
              .bytes = 0,
              .phase = 0,
              .mark = kBarrierMark};
  emulation->self().owes_barrier_fence = true;
}

void FenceBarrierInit() { emulation->self().owes_barrier_fence = false; }

namespace {

void CheckBarrier(const Barrier* barrier, const char* what) {
  emulation->CheckShared(*emulation->self().block, barrier, sizeof(Barrier),
                         what);
  CheckAligned(barrier, sizeof(Barrier));
  if (barrier->mark != kBarrierMark) {
    emulation->Fail(absl::StrCat(what, " before InitBarrier"));
  }
}

void CheckBulk(const void* to, const void* from, uint32_t bytes,
               const char* what) {
  const auto bits = reinterpret_cast<uintptr_t>(to) |
                    reinterpret_cast<uintptr_t>(from) | bytes;
  if (bits % 16 != 0 || bytes == 0 || bytes > kMaxBarrierCount) {
    emulation->Fail(absl::StrCat(
        what, ": want addresses and bytes in sixteens, got ", absl::Hex(to),
        ", ", absl::Hex(from), ", ", bytes, " bytes"));
  }
}

// Whether what is pushed can be seen by the copy: some FenceAsync came before
// it, and where the bytes are others than those pushed last, since then.
void CheckFenced(const void* from, uint32_t bytes) {
  Thread& self = emulation->self();
  const int fence = std::max(self.block->synced_fences, self.fence);
  const size_t hash =
      std::hash<std::string_view>()({static_cast<const char*>(from), bytes});
  const auto [at, is_new] = self.block->pushed.try_emplace(from);
  Block::Pushed& last = at->second;
  if (fence == 0 || (!is_new && hash != last.hash && fence <= last.fence)) {
    emulation->Fail("PushToBlock of bytes without FenceAsync and SyncBlock");
  }
  last = {hash, fence};
}

}  // namespace

void ArriveExpect(Barrier* barrier, uint32_t bytes) {
  emulation->Change();
  CheckBarrier(barrier, "ArriveExpect");
  if (barrier->pending == 0) {
    emulation->Fail("ArriveExpect: more arrivals than the phase has");
  }
  if (int64_t{bytes} + barrier->bytes > int64_t{kMaxBarrierCount}) {
    emulation->Fail("ArriveExpect: more than 2^20-1 bytes to come");
  }
  barrier->bytes += bytes;
  barrier->pending -= 1;
  emulation->EndPhaseIfComplete(*emulation->self().block, *barrier);
}

bool WaitParity(Barrier* barrier, uint32_t parity, uint64_t timeout_ns) {
  CheckBarrier(barrier, "WaitParity");
  if (parity > 1) emulation->Fail("WaitParity: want parity 0 or 1");
  const uint64_t now = emulation->clock();
  emulation->WaitAtBarrier(
      barrier, parity,
      timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX);
  return !emulation->self().timed_out;
}

void FenceAsync() {
  Thread& self = emulation->self();
  self.fence = ++self.block->fences;
}

void PushToBlock(void* to, const void* from, uint32_t bytes, Barrier* barrier,
                 uint32_t rank) {
  Thread& self = emulation->self();
  emulation->Change();
  CheckBulk(to, from, bytes, "PushToBlock");
  if (rank >= self.self.cluster_size) {
    emulation->Fail(absl::StrCat("PushToBlock: rank ", rank,
                                 " of a cluster of ", self.self.cluster_size));
  }
  emulation->CheckShared(*self.block, to, bytes, "PushToBlock to");
  emulation->CheckShared(*self.block, from, bytes, "PushToBlock from");
  emulation->CheckShared(*self.block, barrier, sizeof(Barrier),
                         "PushToBlock's barrier");
  CheckFenced(from, bytes);
  Block& target = *self.block->cluster->blocks[rank];
  const auto there = [&](const void* p) {
    return target.shared +
           (static_cast<const unsigned char*>(p) - self.block->shared);
  };
  emulation->Issue({.issuer = self.block,
                    .target = &target,
                    .to = there(to),
                    .from = static_cast<const unsigned char*>(from),
                    .bytes = bytes,
                    .barrier = reinterpret_cast<Barrier*>(there(barrier))});
}

void BulkLoad(void* to_shared, const void* from_global, uint32_t bytes,
              Barrier* barrier) {
  Block& block = *emulation->self().block;
  emulation->Change();
  CheckBulk(to_shared, from_global, bytes, "BulkLoad");
  emulation->CheckShared(block, to_shared, bytes, "BulkLoad to");
  CheckBarrier(barrier, "BulkLoad");
  emulation->Issue({.issuer = &block,
                    .target = &block,
                    .to = static_cast<unsigned char*>(to_shared),
                    .from = static_cast<const unsigned char*>(from_global),
                    .bytes = bytes,
                    .barrier = barrier});
}

uint32_t AddAcqRel(uint32_t* p, uint32_t v) {
  emulation->Change();
  return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
}

uint32_t LoadSystem(const uint32_t* p) {
  emulation->Poll("LoadSystem", p);
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}

void StoreSystem(uint32_t* p, uint32_t v) {
  emulation->Change();
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

uint64_t Nanoseconds() {
  emulation->Poll("Nanoseconds", nullptr);
  return emulation->clock();
}

void Trap() { emulation->Fail("Trap"); }

void WaitForPrerequisites() {
  emulation->self().waited_for_prerequisites = true;
}

void TriggerDependents() {}

void CheckAligned(const void* p, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(p) % alignment != 0) {
    emulation->Fail(absl::StrCat("address ", absl::Hex(p), ", want ", alignment,
                                 "-byte alignment"));
  }
}

}  // namespace dev
}  // namespace onestep
