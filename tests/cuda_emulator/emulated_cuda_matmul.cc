// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/buffer.h"
#include "runtime/status.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/cuda_emulator/emulated_matmul.h"

namespace onestep {
namespace {

std::string NameOf(const CudaMatMul& matmul) {
  return absl::StrCat("matmul ", matmul.m, "x", matmul.n, "x", matmul.k);
}

// Whether [a, a + a_bytes) and [b, b + b_bytes) have a byte in common.
bool Overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a);
  const auto b_begin = reinterpret_cast<uintptr_t>(b);
  return a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

}  // namespace

absl::StatusOr<std::string> EmulatedCuda::MatMulLibrary() {
  RETURN_IF_ERROR(Begin({"MatMulLibrary"}));
  return "cublasLt 13.1.0 (emulated)";
}

absl::StatusOr<CudaApi::MatMulPlan> EmulatedCuda::PlanMatMul(
    const CudaMatMul& matmul, void* workspace, int64_t workspace_bytes,
    Stream stream) {
  RETURN_IF_ERROR(Begin({.name = "PlanMatMul",
                         .detail = NameOf(matmul),
                         .stream = Number(stream)},
                        true));
  RETURN_IF_ERROR(Find("PlanMatMul", stream).status());
  std::string refusal = MatMulRefusal(matmul);
  if (workspace_bytes < 0 || Address(workspace) % kBufferAlignment != 0 ||
      (workspace_bytes > 0 && !InsideDevice(workspace, workspace_bytes))) {
    refusal = absl::StrFormat("%d bytes at %p are not a workspace",
                              workspace_bytes, workspace);
  }
  if (!refusal.empty()) {
    return CudaError("PlanMatMul", kCudaInvalidValue,
                     absl::StrCat(NameOf(matmul), ": ", refusal));
  }
  if (options_.no_algorithm != nullptr && options_.no_algorithm(matmul)) {
    return absl::UnimplementedError(
        absl::StrCat(NameOf(matmul), ": cublasLt has no algorithm for it"));
  }
  const int64_t number = next_handle_++;
  plans_[number] = {matmul, workspace, workspace_bytes};
  return reinterpret_cast<MatMulPlan>(number);
}

void EmulatedCuda::DestroyMatMulPlan(MatMulPlan plan) {
  BeginDestroy({"DestroyMatMulPlan"});
  if (plans_.erase(Number(plan)) == 0) {
    errors_.push_back("DestroyMatMulPlan of what is not a plan");
  }
}

std::string EmulatedCuda::Describe(MatMulPlan plan) {
  return plans_.count(Number(plan)) != 0 ? "plain loops" : "not a plan";
}

// Device memory of the right size for each that the matmul has, null for the
// others; what is written overlaps nothing that is read.
absl::Status EmulatedCuda::CheckOperands(
    const CudaMatMul& matmul, const CudaMatMulOperands& operands) const {
  const MatMulBytes bytes = BytesOf(matmul);
  const struct {
    const char* name;
    const void* begin;
    int64_t bytes;
  } all[] = {{"y", operands.y, bytes.y},
             {"column_sums", operands.column_sums, bytes.column_sums},
             {"mask", operands.mask, bytes.mask},
             {"a", operands.a, bytes.a},
             {"b", operands.b, bytes.b},
             {"bias", operands.bias, bytes.bias}};
  for (const auto& operand : all) {
    if (operand.bytes == 0 ? operand.begin != nullptr
                           : !InsideDevice(operand.begin, operand.bytes)) {
      return CudaError("RunMatMul", kCudaInvalidValue,
                       absl::StrFormat("%s: want %d bytes of device memory for "
                                       "%s, got %p",
                                       NameOf(matmul), operand.bytes,
                                       operand.name, operand.begin));
    }
  }
  for (int written = 0; written < 3; ++written) {
    for (int other = written + 1; other < 6; ++other) {
      if (Overlap(all[written].begin, all[written].bytes, all[other].begin,
                  all[other].bytes)) {
        return CudaError("RunMatMul", kCudaInvalidValue,
                         absl::StrCat(NameOf(matmul), ": ", all[written].name,
                                      " overlaps ", all[other].name));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status EmulatedCuda::RunMatMul(MatMulPlan plan,
                                     const CudaMatMulOperands& operands,
                                     Stream stream) {
  const auto found = plans_.find(Number(plan));
  const bool known = found != plans_.end();
  RETURN_IF_ERROR(Begin({.name = "RunMatMul",
                         .detail = known ? NameOf(found->second.matmul) : "",
                         .stream = Number(stream)}));
  if (!known) return CudaError("RunMatMul", kCudaInvalidHandle, "not a plan");
  const Plan& state = found->second;
  RETURN_IF_ERROR(CheckOperands(state.matmul, operands));
  EmulatedWork work{.kind = "kernel", .name = NameOf(state.matmul)};
  for (const void* used : {static_cast<const void*>(operands.a),
                           static_cast<const void*>(operands.b),
                           static_cast<const void*>(operands.y),
                           static_cast<const void*>(operands.bias),
                           static_cast<const void*>(operands.mask),
                           static_cast<const void*>(operands.column_sums),
                           static_cast<const void*>(state.workspace)}) {
    if (used != nullptr) work.addresses.push_back(Address(used));
  }
  work.run = [this, plan = state, operands](uint64_t) {
    RETURN_IF_ERROR(CheckOperands(plan.matmul, operands));
    if (plan.workspace_bytes > 0) {
      if (!InsideDevice(plan.workspace, plan.workspace_bytes)) {
        return CudaError("RunMatMul", kCudaIllegalAddress,
                         "its workspace was freed");
      }
      // As a library's split sums would, so that two at once are found.
      std::memset(plan.workspace, 0xff,
                  static_cast<size_t>(plan.workspace_bytes));
    }
    MultiplyMatrices(plan.matmul, operands);
    return absl::OkStatus();
  };
  return Enqueue("RunMatMul", stream, {.work = std::move(work)});
}

}  // namespace onestep
