// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.h"
#include "kernels/probe_launch.h"

namespace onestep::cuda {
namespace {

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

struct CopyArgs {
  const float* x;
  float* y;
  int64_t groups;  // of 4 floats
};

// A thread copies 16 bytes at a time, a grid apart.
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

Launch ProbeCopy(const float* x, float* y, int64_t n) {
  const CopyArgs args = {x, y, n / 4};
  const int64_t wanted = (args.groups + 255) / 256;
  return Shaped(ONESTEP_LAUNCH(CopyKernel<256>, args),
                wanted < kCopyBlocks ? wanted : kCopyBlocks, 256);
}

}  // namespace onestep::cuda
