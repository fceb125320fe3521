// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_matmuls.h"

#include "runtime/base/status.h"

namespace onestep {

absl::StatusOr<CudaApi::MatMulPlan> CudaMatMuls::Plan(
    const CudaMatMul& matmul) {
  for (const auto& [planned, plan] : plans_) {
    if (planned == matmul) return plan.get();
  }
  if (!workspace_) {
    ASSIGN_OR_RETURN(workspace_,
                     Own<CudaMemory>(cuda_, cuda_.Malloc(kWorkspaceBytes)));
  }
  ASSIGN_OR_RETURN(
      CudaMatMulPlan plan,
      Own<CudaMatMulPlan>(cuda_, cuda_.PlanMatMul(matmul, workspace_.get(),
                                                  kWorkspaceBytes, stream_)));
  plans_.emplace_back(matmul, std::move(plan));
  return plans_.back().second.get();
}

}  // namespace onestep
