// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/hidden_split_t1.cuh"

namespace onestep::cuda {
namespace {

using namespace hidden_split;

uint32_t Tiles(int64_t n, int64_t tile) {
  return static_cast<uint32_t>((n + tile - 1) / tile);
}

// `grid_y`: tiles of what a group of hidden units is split over.
Launch Finish(Launch launch, const HiddenSplitPlan& plan, const Layout& layout,
              uint32_t grid_y) {
  launch.grid = {static_cast<uint32_t>(plan.blocks), grid_y};
  launch.block = {kThreads};
  launch.shared_bytes = static_cast<uint32_t>(layout.bytes);
  launch.waits = true;
  return launch;
}

template <int kParts>
Launch Forward(const HiddenSplitPlan& plan, const StepArgs& args) {
  return Finish(ONESTEP_LAUNCH(HiddenSplitForwardKernel<kParts>, args), plan,
                args.layout, Tiles(args.batch, args.layout.rows));
}
template <int kParts>
Launch Backward(const HiddenSplitPlan& plan, const StepArgs& args) {
  return Finish(ONESTEP_LAUNCH(HiddenSplitBackwardKernel<kParts>, args), plan,
                args.layout, Tiles(args.features, args.layout.slots));
}

}  // namespace

Launch HiddenSplitForward(const HiddenSplitPlan& plan,
                          const HiddenSplitBuffers& buffers, int64_t offset) {
  const StepArgs args =
      MakeStepArgs(plan, buffers, ForwardLayout(plan.shape), offset);
  switch (plan.shape.first_layer) {
    case FirstLayer::kFma:
      return Forward<0>(plan, args);
    case FirstLayer::kSplit3:
      return Forward<3>(plan, args);
    case FirstLayer::kBf16:
      return Forward<1>(plan, args);
  }
  return {};
}

Launch HiddenSplitLoss(const HiddenSplitPlan& plan,
                       const HiddenSplitBuffers& buffers, int64_t offset) {
  const StepArgs args =
      MakeStepArgs(plan, buffers, ForwardLayout(plan.shape), offset);
  Launch launch = ONESTEP_LAUNCH(HiddenSplitLossKernel<true>, args);
  launch.grid = {Tiles(args.batch, kThreads / args.layout.class_lanes)};
  launch.block = {kThreads};
  launch.shared_bytes = kThreads * sizeof(int32_t);
  launch.waits = true;
  return launch;
}

Launch HiddenSplitBackward(const HiddenSplitPlan& plan,
                           const HiddenSplitBuffers& buffers, int64_t offset) {
  const StepArgs args =
      MakeStepArgs(plan, buffers, BackwardLayout(plan.shape), offset);
  switch (plan.shape.first_layer) {
    case FirstLayer::kFma:
      return Backward<0>(plan, args);
    case FirstLayer::kSplit3:
      return Backward<3>(plan, args);
    case FirstLayer::kBf16:
      return Backward<1>(plan, args);
  }
  return {};
}

}  // namespace onestep::cuda
