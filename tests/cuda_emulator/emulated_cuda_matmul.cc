// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"
#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/cuda_emulator/emulated_matmul.h"

namespace onestep {
namespace {

std::string NameOf(const CudaMatMul& matmul) {
  return absl::StrCat("matmul ", matmul.m, "x", matmul.n, "x", matmul.k);
}

// Whether they have a byte in common.
bool Overlap(const MatMulOperand& a, const MatMulOperand& b) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a.address);
  const auto b_begin = reinterpret_cast<uintptr_t>(b.address);
  return a_begin < b_begin + b.bytes && b_begin < a_begin + a.bytes;
}

// What a run leaves in a workspace is of no use to anyone.
void Scribble(void* workspace, int64_t bytes) {
  if (bytes > 0) std::memset(workspace, 0xff, static_cast<size_t>(bytes));
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
  ASSIGN_OR_RETURN(StreamState * on, Find("PlanMatMul", stream));
  if (std::min({matmul.m, matmul.n, matmul.k}) < 1) {
    return CudaError("PlanMatMul", kCudaInvalidValue, NameOf(matmul));
  }
  if (workspace_bytes < 0 || Address(workspace) % kBufferAlignment != 0 ||
      (workspace_bytes > 0 && !InsideDevice(workspace, workspace_bytes))) {
    return CudaError("PlanMatMul", kCudaInvalidValue,
                     absl::StrFormat("%d bytes at %p are not a workspace",
                                     workspace_bytes, workspace));
  }
  if (const std::string why = EpilogueRefusal(matmul); !why.empty()) {
    return absl::UnimplementedError(absl::StrCat(NameOf(matmul), ": ", why));
  }
  if (options_.no_algorithm != nullptr && options_.no_algorithm(matmul)) {
    return absl::UnimplementedError(
        absl::StrCat(NameOf(matmul), ": cublasLt has no algorithm for it"));
  }
  RETURN_IF_ERROR(Drain("PlanMatMul", *on));
  Scribble(workspace, workspace_bytes);
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

// Device memory of the right size and alignment for each that the matmul has,
// null for the others; what is written overlaps nothing else.
absl::Status EmulatedCuda::CheckOperands(
    const CudaMatMul& matmul, const CudaMatMulOperands& operands) const {
  const auto wrong = [&](const std::string& why) {
    return CudaError("RunMatMul", kCudaInvalidValue,
                     absl::StrCat(NameOf(matmul), ": ", why));
  };
  const auto all = OperandsOf(matmul, operands);
  for (const MatMulOperand& operand : all) {
    if (operand.bytes == 0 ? operand.address != nullptr
                           : !InsideDevice(operand.address, operand.bytes)) {
      return wrong(
          absl::StrFormat("want %d bytes of device memory for %s, "
                          "got %p",
                          operand.bytes, operand.name, operand.address));
    }
    if (Address(operand.address) % operand.alignment != 0) {
      return wrong(absl::StrCat("want ", operand.name, " aligned to ",
                                operand.alignment, " bytes"));
    }
  }
  for (size_t written = 0; written < 3; ++written) {
    for (size_t other = written + 1; other < all.size(); ++other) {
      if (Overlap(all[written], all[other])) {
        return wrong(
            absl::StrCat(all[written].name, " overlaps ", all[other].name));
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
  for (const MatMulOperand& operand : OperandsOf(state.matmul, operands)) {
    if (operand.bytes > 0) work.addresses.push_back(Address(operand.address));
  }
  work.addresses.push_back(Address(state.workspace));
  work.run = [this, plan = state, operands](uint64_t) {
    RETURN_IF_ERROR(CheckOperands(plan.matmul, operands));
    if (plan.workspace_bytes > 0) {
      if (!InsideDevice(plan.workspace, plan.workspace_bytes)) {
        return CudaError("RunMatMul", kCudaIllegalAddress,
                         "its workspace was freed");
      }
      Scribble(plan.workspace, plan.workspace_bytes);
    }
    MultiplyMatrices(plan.matmul, operands);
    return absl::OkStatus();
  };
  return Enqueue("RunMatMul", stream, {.work = std::move(work)});
}

}  // namespace onestep
