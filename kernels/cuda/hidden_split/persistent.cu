// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/hidden_split/persistent.cuh"

namespace onestep::cuda {
namespace hidden_split {
namespace {

Launch PersistentFor8(CudaFirstLayer first_layer, const PersistentArgs& args) {
  switch (first_layer) {
    case CudaFirstLayer::kAuto:
    case CudaFirstLayer::kFma:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<1, 0>), args);
    case CudaFirstLayer::kSplit:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<1, 3>), args);
    case CudaFirstLayer::kBf16:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<1, 1>), args);
  }
  return {};
}
Launch PersistentFor16(CudaFirstLayer first_layer, const PersistentArgs& args) {
  switch (first_layer) {
    case CudaFirstLayer::kAuto:
    case CudaFirstLayer::kFma:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<2, 0>), args);
    case CudaFirstLayer::kSplit:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<2, 3>), args);
    case CudaFirstLayer::kBf16:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<2, 1>), args);
  }
  return {};
}

}  // namespace
}  // namespace hidden_split

Launch HiddenSplitPersistent(const HiddenSplitPlan& plan,
                             const HiddenSplitBuffers& buffers, int64_t first,
                             int64_t steps, const PersistentSignals& signals) {
  namespace split = hidden_split;
  const split::Layout layout = split::PersistentLayout(plan);
  const split::PersistentArgs args = {
      split::MakeStepArgs(plan, buffers, layout, first), steps, signals};
  const CudaFirstLayer first_layer = plan.shape.first_layer;
  Launch launch = layout.columns == 8
                      ? split::PersistentFor8(first_layer, args)
                      : split::PersistentFor16(first_layer, args);
  launch.grid = {static_cast<uint32_t>(plan.blocks), 1, split::Models(plan)};
  launch.block = {split::kThreads};
  launch.cluster = static_cast<uint32_t>(plan.blocks);
  launch.shared_bytes = static_cast<uint32_t>(layout.bytes);
  return launch;
}

}  // namespace onestep::cuda
