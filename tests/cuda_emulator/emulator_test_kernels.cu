// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.h"
#include "tests/cuda_emulator/emulator_test_kernels.h"

namespace onestep::cuda {
namespace {

struct ScaleArgs {
  const float* x;
  float* y;
  float alpha;
  int64_t n;
};

template <int kWidth, bool kAgain>
ONESTEP_KERNEL(96)
void ScaleKernel(ScaleArgs args) {
  using Group = dev::Vec<float, kWidth>;
  const int64_t i =
      (int64_t{dev::BlockIndex().x} * dev::BlockDim().x + dev::ThreadIndex().x);
  if (i * kWidth >= args.n) return;
  Group group = dev::LoadReadOnly(reinterpret_cast<const Group*>(args.x) + i);
  for (float& v : group.v) v *= args.alpha;
  reinterpret_cast<Group*>(args.y)[i] = group;
}

}  // namespace

Launch TestScale(const float* x, float alpha, float* y, int64_t n) {
  const ScaleArgs args = {x, y, alpha, n};
  Launch launch = ONESTEP_LAUNCH((ScaleKernel<4, true>), args);
  launch.block.x = 96;
  launch.grid.x = (n / 4 + 95) / 96;
  return launch;
}

}  // namespace onestep::cuda
