// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/probe.cuh"
#include "kernels/probe_launch.h"

namespace onestep::cuda {
namespace {

constexpr int64_t kCopyBlocks = 2048;

Launch Shaped(Launch launch, int64_t blocks, int threads) {
  launch.grid.x = static_cast<uint32_t>(blocks);
  launch.block.x = threads;
  return launch;
}

}  // namespace

Launch ProbeEmpty(bool waits) {
  const EmptyArgs args;
  Launch launch = waits ? ONESTEP_LAUNCH(EmptyKernel<true>, args)
                        : ONESTEP_LAUNCH(EmptyKernel<false>, args);
  launch.waits = waits;
  return Shaped(launch, 1, 32);
}

Launch ProbeWhile(uint64_t handle, uint32_t* count, uint32_t iterations) {
  const WhileArgs args = {handle, count, iterations};
  return Shaped(ONESTEP_LAUNCH(WhileKernel<32>, args), 1, 32);
}

Launch ProbeGridBarrier(uint32_t* counter, int32_t rounds, int32_t blocks) {
  const GridBarrierArgs args = {counter, rounds};
  Launch launch = ONESTEP_LAUNCH(GridBarrierKernel<256>, args);
  launch.cooperative = true;
  return Shaped(launch, blocks, 256);
}

Launch ProbeClusterBarrier(int32_t rounds, int32_t cluster) {
  const ClusterArgs args = {rounds};
  Launch launch = ONESTEP_LAUNCH(ClusterBarrierKernel<256>, args);
  launch.cluster = cluster;
  return Shaped(launch, cluster, 256);
}

Launch ProbePush(int32_t rounds) {
  const ClusterArgs args = {rounds};
  Launch launch = ONESTEP_LAUNCH(PushKernel<32>, args);
  launch.cluster = 2;
  launch.shared_bytes = sizeof(PushShared);
  return Shaped(launch, 2, 32);
}

Launch ProbeFlag(uint32_t* flags, int32_t rounds) {
  const FlagArgs args = {flags, flags + kProbeFlagStride, rounds};
  Launch launch = ONESTEP_LAUNCH(FlagKernel<32>, args);
  launch.cooperative = true;  // both blocks at once
  return Shaped(launch, 2, 32);
}

Launch ProbeCopy(const float* x, float* y, int64_t n) {
  const CopyArgs args = {x, y, n / 4};
  const int64_t wanted = (args.groups + 255) / 256;
  return Shaped(ONESTEP_LAUNCH(CopyKernel<256>, args),
                wanted < kCopyBlocks ? wanted : kCopyBlocks, 256);
}

}  // namespace onestep::cuda
