// SPDX-License-Identifier: Apache-2.0
// Between steps: small copies whose addresses advance with the step.
#ifndef ONESTEP_KERNELS_CUDA_BOUNDARY_CUH_
#define ONESTEP_KERNELS_CUDA_BOUNDARY_CUH_

#include "kernels/cuda/common.cuh"

namespace onestep::cuda {

inline constexpr uint32_t kBoundaryThreads = 512;
static_assert(kMaxBoundaryMoves * kWarpSize <= kBoundaryThreads);

// By the threads from `begin` on, round and round.
template <typename Unit>
ONESTEP_DEVICE void CopyUnits(void* to, const void* from, int64_t bytes,
                              uint32_t begin) {
  const uint32_t threads = dev::BlockDim().x;
  const int64_t units = bytes / static_cast<int64_t>(sizeof(Unit));
  int64_t i = (dev::ThreadIndex().x + threads - begin) % threads;
  for (; i < units; i += threads) {
    static_cast<Unit*>(to)[i] = static_cast<const Unit*>(from)[i];
  }
}

// Each small move by a warp of its own, so that they wait for memory together.
ONESTEP_DEVICE void Move(void* to, const void* from, int64_t bytes,
                         int32_t index) {
  using Sixteen = dev::Vec<uint32_t, 4>;
  const uint32_t begin = static_cast<uint32_t>(index) * kWarpSize;
  const uint64_t all = reinterpret_cast<uint64_t>(to) |
                       reinterpret_cast<uint64_t>(from) |
                       static_cast<uint64_t>(bytes);
  if (all % sizeof(Sixteen) == 0) {
    CopyUnits<Sixteen>(to, from, bytes, begin);
  } else {
    CopyUnits<uint32_t>(to, from, bytes, begin);
  }
}

ONESTEP_KERNEL(kBoundaryThreads) void StepBoundary(BoundaryParams p) {
  Begin();
  const int64_t step = p.control->step;
  const int64_t next = step + p.advance;
  for (int32_t i = 0; i < p.publishes; ++i) {
    const BoundaryMove& move = p.moves[i];
    Move(static_cast<unsigned char*>(move.to) + step * move.stride_bytes,
         move.from, move.bytes, i);
  }
  // A fetch may overwrite what is published, and the step was read by all.
  dev::SyncBlock();
  if (dev::ThreadIndex().x == 0) p.control->step = next;
  for (int32_t i = 0; i < p.fetches; ++i) {
    const BoundaryMove& move = p.moves[p.publishes + i];
    Move(
        move.to,
        static_cast<const unsigned char*>(move.from) + next * move.stride_bytes,
        move.bytes, i);
  }
}

struct AdvanceArgs {
  StepControl* control;
  int64_t steps;
};

ONESTEP_KERNEL(kWarpSize) void Advance(AdvanceArgs args) {
  Begin();
  if (dev::ThreadIndex().x == 0) args.control->step += args.steps;
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_BOUNDARY_CUH_
