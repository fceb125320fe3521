// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/hidden_split_t3.cuh"

namespace onestep::cuda {
namespace {

using namespace hidden_split;

template <int kTiles>
Launch ForFirstLayer(FirstLayer first_layer, const PersistentArgs& args) {
  switch (first_layer) {
    case FirstLayer::kFma:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<kTiles, 0>), args);
    case FirstLayer::kSplit3:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<kTiles, 3>), args);
    case FirstLayer::kBf16:
      return ONESTEP_LAUNCH((HiddenSplitPersistentKernel<kTiles, 1>), args);
  }
  return {};
}

}  // namespace

Launch HiddenSplitPersistent(const HiddenSplitPlan& plan,
                             const HiddenSplitBuffers& buffers, int64_t first,
                             int64_t steps, const PersistentSignals& signals) {
  const Layout layout = PersistentLayout(plan);
  const PersistentArgs args = {MakeStepArgs(plan, buffers, layout, first),
                               steps, signals};
  const FirstLayer first_layer = plan.shape.first_layer;
  Launch launch = layout.columns == 8 ? ForFirstLayer<1>(first_layer, args)
                                      : ForFirstLayer<2>(first_layer, args);
  launch.grid = {static_cast<uint32_t>(plan.blocks)};
  launch.block = {kThreads};
  launch.cluster = static_cast<uint32_t>(plan.blocks);
  launch.shared_bytes = static_cast<uint32_t>(layout.bytes);
  return launch;
}

}  // namespace onestep::cuda
