// SPDX-License-Identifier: Apache-2.0
// The matmuls of CudaApi by cublasLt, which is loaded when the first is asked
// for: it is 540 MB, and a run on the CPU has no use for it.
//
// cublasLt is column-major at heart (its row-major order lacks epilogues). A
// row-major matrix [r,c] is the column-major [c,r], so that instead of
// y = op(a) op(b) it computes y^T = op(b)^T op(a)^T: its A is b, its B is a.
#ifndef ONESTEP_RUNTIME_CUDA_CUBLAS_LT_H_
#define ONESTEP_RUNTIME_CUDA_CUBLAS_LT_H_

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_handle.h"

namespace onestep {

// A matmul as cublasLt is told of it. Leading dimensions and the strides
// between models are in elements, of the mask in bits.
struct LtProblem {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldd = 0, mask_ld = 0;
  int64_t models = 1;
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;
  int64_t vector_stride = 0, mask_stride = 0;
};

// Unimplemented: no epilogue does what is asked for, or not for many models.
absl::StatusOr<LtProblem> ToLtProblem(const CudaMatMul& matmul);

// What is sure of an operand's address: it lies at a whole number of rows from
// a 256-byte boundary. A power of two.
uint32_t LtAlignment(int64_t leading_dimension);

// The functions of cublasLt that are used here, by name.
#define ONESTEP_LT_FUNCTIONS(F)           \
  F(cublasLtCreate)                       \
  F(cublasLtGetStatusString)              \
  F(cublasLtGetVersion)                   \
  F(cublasLtMatmul)                       \
  F(cublasLtMatmulAlgoConfigGetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic)       \
  F(cublasLtMatmulDescCreate)             \
  F(cublasLtMatmulDescDestroy)            \
  F(cublasLtMatmulDescGetAttribute)       \
  F(cublasLtMatmulDescSetAttribute)       \
  F(cublasLtMatmulPreferenceCreate)       \
  F(cublasLtMatmulPreferenceDestroy)      \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatrixLayoutCreate)           \
  F(cublasLtMatrixLayoutDestroy)          \
  F(cublasLtMatrixLayoutSetAttribute)

struct LtFunctions {
#define ONESTEP_LT_MEMBER(name) decltype(&::name) name = nullptr;
  ONESTEP_LT_FUNCTIONS(ONESTEP_LT_MEMBER)
#undef ONESTEP_LT_MEMBER
};

// Loads the library, once. Unavailable: why it cannot be.
absl::StatusOr<const LtFunctions*> LoadCublasLt();

// cublasLt's own objects for a problem. Needs no device.
class LtDescriptors {
 public:
  static absl::StatusOr<std::unique_ptr<LtDescriptors>> Create(
      const LtFunctions& lt, const LtProblem& problem);
  ~LtDescriptors();
  LtDescriptors(const LtDescriptors&) = delete;
  LtDescriptors& operator=(const LtDescriptors&) = delete;

  // Of the vector (bias, or the column sums) and the mask of the next run.
  absl::Status SetPointers(const void* vector, const void* mask);

  const LtProblem& problem() const { return problem_; }
  cublasLtMatmulDesc_t operation() const { return operation_; }
  cublasLtMatrixLayout_t a() const { return a_; }
  cublasLtMatrixLayout_t b() const { return b_; }
  // Of what is added, too: in place wants one layout for both.
  cublasLtMatrixLayout_t d() const { return d_; }

 private:
  LtDescriptors(const LtFunctions& lt, const LtProblem& problem)
      : lt_(lt), problem_(problem) {}
  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute, T value);

  const LtFunctions& lt_;
  const LtProblem problem_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

struct LtPlan {
  CudaMatMul matmul;
  std::unique_ptr<LtDescriptors> descriptors;
  cublasLtMatmulAlgo_t algo = {};
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
  std::string description;  // as CudaApi::Describe
};

class CublasLt {
 public:
  // Codes as in cuda_api.h. `cuda` must outlive it.
  static absl::StatusOr<std::unique_ptr<CublasLt>> Create(CudaApi& cuda);

  std::string Version() const;
  // As CudaApi::PlanMatMul. A matmul that was planned before, with as large a
  // workspace, gets the algorithm that won then.
  absl::StatusOr<std::unique_ptr<LtPlan>> Plan(const CudaMatMul& matmul,
                                               void* workspace,
                                               int64_t workspace_bytes,
                                               CudaApi::Stream stream);
  absl::Status Run(LtPlan& plan, const CudaMatMulOperands& operands,
                   CudaApi::Stream stream);

 private:
  struct Choice {
    CudaMatMul matmul;
    int64_t workspace_bytes;
    cublasLtMatmulAlgo_t algo;
    std::string description;
  };

  CublasLt(CudaApi& cuda, const LtFunctions& lt) : cuda_(cuda), lt_(lt) {}
  absl::StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>> Candidates(
      const LtPlan& plan) const;
  absl::Status ChooseFastest(LtPlan& plan, CudaApi::Stream stream);
  absl::StatusOr<double> TimeMicroseconds(LtPlan& plan,
                                          const CudaMatMulOperands& operands,
                                          CudaApi::Stream stream);
  absl::StatusOr<CudaGraph> Repeat(LtPlan& plan,
                                   const CudaMatMulOperands& operands,
                                   CudaApi::Stream stream);
  std::string AlgoName(const cublasLtMatmulAlgo_t& algo) const;

  CudaApi& cuda_;
  const LtFunctions& lt_;
  cublasLtHandle_t handle_ = nullptr;
  CudaMemory scalars_;  // 1, 0: what alpha and beta point to
  std::vector<Choice> choices_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUBLAS_LT_H_
