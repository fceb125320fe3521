// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/hidden_split/hidden_split_t2.cuh"

namespace onestep::cuda {
namespace hidden_split {
namespace {

Launch PipelinedFor(FirstLayer first_layer, const PipelinedArgs& args) {
  switch (first_layer) {
    case FirstLayer::kFma:
      return ONESTEP_LAUNCH(HiddenSplitPipelinedKernel<0>, args);
    case FirstLayer::kSplit3:
      return ONESTEP_LAUNCH(HiddenSplitPipelinedKernel<3>, args);
    case FirstLayer::kBf16:
      return ONESTEP_LAUNCH(HiddenSplitPipelinedKernel<1>, args);
  }
  return {};
}

}  // namespace
}  // namespace hidden_split

Launch HiddenSplitPipelined(const HiddenSplitPlan& plan,
                            const HiddenSplitBuffers& buffers, int64_t offset,
                            bool first, bool last) {
  namespace split = hidden_split;
  const split::Layout layout = split::PipelinedLayout(plan.shape);
  const split::PipelinedArgs args = {
      split::MakeStepArgs(plan, buffers, layout, offset), first, last};
  Launch launch = split::PipelinedFor(plan.shape.first_layer, args);
  launch.grid = {static_cast<uint32_t>(plan.blocks), 1, split::Models(plan)};
  launch.block = {split::kThreads};
  launch.shared_bytes = static_cast<uint32_t>(layout.bytes);
  launch.waits = true;
  return launch;
}

}  // namespace onestep::cuda
