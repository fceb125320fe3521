// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_op.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {
namespace gpu {
namespace {

using LowerFn = CudaKernel (*)(const CudaOp&);

#define ONESTEP_BACKEND kCuda
#include "compiler/lower/lower_fns.inc"
#undef ONESTEP_BACKEND

}  // namespace

Place CudaOp::PlaceOf(Value value) const {
  if (!value) return {};
  const TensorType& type = value.type();
  return {plan_.SlotOf(value),
          type.models > 0 ? type.num_elements() * DTypeBytes(type.dtype) : 0};
}

}  // namespace gpu

absl::StatusOr<CudaKernel> MakeCudaKernel(const MemoryPlan& plan, Node& node) {
  const gpu::LowerFn lower = gpu::kLowerFns[static_cast<size_t>(node.kind)];
  if (lower == nullptr) {
    return absl::UnimplementedError(absl::StrCat(node.op(), " on device gpu"));
  }
  CudaKernel kernel = lower({plan, node});
  const int64_t models = node.types[0].models;
  if (models == 0) return kernel;
  if (models > cuda::kMaxModels) {
    return absl::UnimplementedError(absl::StrCat(
        "models ", models, " on device gpu, want at most ", cuda::kMaxModels));
  }
  kernel.workspace_bytes *= models;
  kernel.launch = [models, one = std::move(kernel.launch)](
                      const CudaBindings& at, void* workspace) {
    Launch launch = one(at, workspace);
    launch.grid.z = static_cast<uint32_t>(models);
    return launch;
  };
  return kernel;
}

}  // namespace onestep
