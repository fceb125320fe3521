// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.h"
#include "tests/cuda_emulator/test_kernels.h"

namespace onestep {
namespace {

constexpr uint32_t kThreads = 32;

struct VectorArgs {
  const float* x;
  float* y;
  float value;
  int64_t n;
};

enum class Op { kAdd, kScale, kCopy };

template <Op kOp, bool kWaits>
ONESTEP_KERNEL(32)
void Elementwise(VectorArgs args) {
  if constexpr (kWaits) dev::WaitForPrerequisites();
  const int64_t i =
      int64_t{dev::BlockIndex().x} * kThreads + dev::ThreadIndex().x;
  if (i >= args.n) return;
  if constexpr (kOp == Op::kAdd) args.y[i] = args.x[i] + args.value;
  if constexpr (kOp == Op::kScale) args.y[i] = args.x[i] * args.value;
  if constexpr (kOp == Op::kCopy) args.y[i] = args.x[i];
}

struct TrapArgs {
  int unused;
};

template <int kUnused>
ONESTEP_KERNEL(32)
void JustTrap(TrapArgs) {
  dev::Trap();
}

Launch OverElements(Launch launch, int64_t n) {
  launch.grid.x = static_cast<uint32_t>((n + kThreads - 1) / kThreads);
  launch.block.x = kThreads;
  return launch;
}

}  // namespace

Launch AddLaunch(float* x, float value, int64_t n) {
  const VectorArgs args{x, x, value, n};
  return OverElements(ONESTEP_LAUNCH((Elementwise<Op::kAdd, false>), args), n);
}

Launch WaitingAddLaunch(float* x, float value, int64_t n) {
  const VectorArgs args{x, x, value, n};
  Launch launch =
      OverElements(ONESTEP_LAUNCH((Elementwise<Op::kAdd, true>), args), n);
  launch.waits = true;
  return launch;
}

Launch ScaleLaunch(float* x, float factor, int64_t n) {
  const VectorArgs args{x, x, factor, n};
  return OverElements(ONESTEP_LAUNCH((Elementwise<Op::kScale, false>), args),
                      n);
}

Launch CopyLaunch(const float* x, float* y, int64_t n) {
  const VectorArgs args{x, y, 0, n};
  return OverElements(ONESTEP_LAUNCH((Elementwise<Op::kCopy, false>), args), n);
}

Launch TrapLaunch() { return ONESTEP_LAUNCH(JustTrap<0>, TrapArgs{}); }

}  // namespace onestep
