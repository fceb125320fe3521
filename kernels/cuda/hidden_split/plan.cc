// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <string>

#include "kernels/cuda/hidden_split/hidden_split.h"
#include "kernels/cuda/hidden_split/layout.h"

namespace onestep::cuda {
namespace {

using hidden_split::kMaxClasses;
using hidden_split::kMaxRows;

constexpr int64_t kMaxSize = 1 << 20;  // of any dimension

std::string TooMany(const char* what, int64_t got, int64_t most) {
  return std::string(what) + " " + std::to_string(got) + ", want at most " +
         std::to_string(most);
}

std::string ShapeRefusal(const HiddenSplitShape& shape) {
  if (std::min({shape.batch, shape.features, shape.hidden, shape.classes}) < 1)
    return "want sizes of at least 1";
  if (ActivationGradReadsOperand(shape.act))
    return std::string(ToString(shape.act)) +
           " has no gradient from its result alone";
  if (shape.classes > kMaxClasses)
    return TooMany("classes", shape.classes, kMaxClasses);
  if (shape.batch > kMaxSize) return TooMany("batch", shape.batch, kMaxSize);
  if (shape.features > kMaxSize)
    return TooMany("features", shape.features, kMaxSize);
  if (shape.models > kMaxModels)
    return TooMany("models", shape.models, kMaxModels);
  if (shape.hidden > kMaxSize) return TooMany("hidden", shape.hidden, kMaxSize);
  return "";
}

// The smallest cluster for tier persistent, a power of two: of 8 columns a
// block, else of 16.
std::string PlaceCluster(const DeviceLimits& limits, HiddenSplitPlan& plan) {
  const int64_t hidden = plan.shape.hidden;
  if (limits.max_cluster < 2) return "the device has no clusters of blocks";
  const auto most = static_cast<int64_t>(
      std::bit_floor(static_cast<uint32_t>(std::min(limits.max_cluster, 16))));
  const int64_t columns = hidden <= most * 8 ? 8 : 16;
  if (hidden > most * columns) {
    return TooMany("hidden", hidden, most * columns) + " in a cluster of " +
           std::to_string(most);
  }
  if (plan.shape.batch > kMaxRows)
    return TooMany("batch", plan.shape.batch, kMaxRows);
  const int64_t blocks = (hidden + columns - 1) / columns;
  plan.blocks = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(blocks)));
  return "";
}

int64_t SharedBytes(const HiddenSplitPlan& plan) {
  return plan.tier == CudaTier::kPersistent
             ? hidden_split::PersistentLayout(plan).bytes
             : std::max(hidden_split::ForwardLayout(plan.shape).bytes,
                        hidden_split::BackwardLayout(plan.shape).bytes);
}

std::string Refusal(const DeviceLimits& limits, HiddenSplitPlan& plan) {
  std::string refusal = ShapeRefusal(plan.shape);
  if (!refusal.empty()) return refusal;
  if (plan.tier == CudaTier::kPersistent) {
    refusal = PlaceCluster(limits, plan);
    if (!refusal.empty()) return refusal;
  } else {
    plan.blocks = static_cast<int>((plan.shape.hidden + 7) / 8);
  }
  const int64_t shared_bytes = SharedBytes(plan);
  if (shared_bytes > limits.shared_bytes) {
    return "want " + std::to_string(shared_bytes) +
           " bytes of shared memory a block, the device has " +
           std::to_string(limits.shared_bytes);
  }
  hidden_split::CutWorkspace(plan, nullptr, &plan.workspace_bytes);
  plan.workspace_bytes *= plan.shape.models;
  return "";
}

}  // namespace

HiddenSplitPlan PlanHiddenSplit(CudaTier tier, const HiddenSplitShape& shape,
                                const DeviceLimits& limits) {
  HiddenSplitPlan plan;
  plan.tier = tier;
  plan.shape = shape;
  plan.refusal = Refusal(limits, plan);
  return plan;
}

}  // namespace onestep::cuda
