// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/hidden_split/fused.cuh"

namespace onestep::cuda {
namespace hidden_split {
namespace {

uint32_t Tiles(int64_t n, int64_t tile) {
  return static_cast<uint32_t>((n + tile - 1) / tile);
}

Launch ForwardFor(CudaFirstLayer first_layer, const StepArgs& args) {
  switch (first_layer) {
    case CudaFirstLayer::kAuto:
    case CudaFirstLayer::kFma:
      return ONESTEP_LAUNCH(HiddenSplitForwardKernel<0>, args);
    case CudaFirstLayer::kSplit:
      return ONESTEP_LAUNCH(HiddenSplitForwardKernel<3>, args);
    case CudaFirstLayer::kBf16:
      return ONESTEP_LAUNCH(HiddenSplitForwardKernel<1>, args);
  }
  return {};
}

Launch BackwardFor(CudaFirstLayer first_layer, const StepArgs& args) {
  switch (first_layer) {
    case CudaFirstLayer::kAuto:
    case CudaFirstLayer::kFma:
      return ONESTEP_LAUNCH(HiddenSplitBackwardKernel<0>, args);
    case CudaFirstLayer::kSplit:
      return ONESTEP_LAUNCH(HiddenSplitBackwardKernel<3>, args);
    case CudaFirstLayer::kBf16:
      return ONESTEP_LAUNCH(HiddenSplitBackwardKernel<1>, args);
  }
  return {};
}

Launch LossFor(const StepArgs& args) {
  return ONESTEP_LAUNCH(HiddenSplitLossKernel, args);
}

Launch Sized(Launch launch, Dim grid, int64_t shared_bytes) {
  launch.grid = grid;
  launch.block = {kThreads};
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes);
  launch.waits = true;
  return launch;
}

}  // namespace
}  // namespace hidden_split

Launch HiddenSplitForward(const HiddenSplitPlan& plan,
                          const HiddenSplitBuffers& buffers, int64_t offset) {
  namespace split = hidden_split;
  const split::Layout layout = split::ForwardLayout(plan.shape);
  return split::Sized(
      split::ForwardFor(plan.shape.first_layer,
                        split::MakeStepArgs(plan, buffers, layout, offset)),
      {static_cast<uint32_t>(plan.blocks),
       split::Tiles(plan.shape.batch, layout.rows), split::Models(plan)},
      layout.bytes);
}

Launch HiddenSplitLoss(const HiddenSplitPlan& plan,
                       const HiddenSplitBuffers& buffers, int64_t offset) {
  namespace split = hidden_split;
  const split::StepArgs args = split::MakeStepArgs(
      plan, buffers, split::ForwardLayout(plan.shape), offset);
  const int rows = split::kThreads >> args.layout.class_shift;
  return split::Sized(
      split::LossFor(args),
      {split::Tiles(plan.shape.batch, rows), 1, split::Models(plan)},
      rows * sizeof(int32_t));
}

Launch HiddenSplitBackward(const HiddenSplitPlan& plan,
                           const HiddenSplitBuffers& buffers, int64_t offset) {
  namespace split = hidden_split;
  const split::Layout layout = split::BackwardLayout(plan.shape);
  return split::Sized(
      split::BackwardFor(plan.shape.first_layer,
                         split::MakeStepArgs(plan, buffers, layout, offset)),
      {static_cast<uint32_t>(plan.blocks),
       split::Tiles(plan.shape.features, layout.slots), split::Models(plan)},
      layout.bytes);
}

}  // namespace onestep::cuda
