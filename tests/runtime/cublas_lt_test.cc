// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cublas_lt.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

// The matmuls of a train step of 784-128-10 at batch 32, weights [in,out].
CudaMatMul Forward() {
  return {.m = 32,
          .n = 128,
          .k = 784,
          .bias = true,
          .relu = true,
          .mask_out = true};
}
CudaMatMul InputGradient() {  // dh = dz w2^T, masked
  return {.m = 32,
          .n = 128,
          .k = 10,
          .trans_b = true,
          .mask_in = true,
          .column_sums = true};
}
CudaMatMul WeightGradient() {  // w += x^T dh
  return {.m = 784,
          .n = 128,
          .k = 32,
          .trans_a = true,
          .accumulate = true,
          .column_sums = true};
}

LtProblem Problem(const CudaMatMul& matmul) {
  const absl::StatusOr<LtProblem> problem = ToLtProblem(matmul);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return problem.ok() ? *problem : LtProblem{};
}

void ExpectShape(const LtProblem& p, int64_t m, int64_t n, int64_t k,
                 int64_t lda, int64_t ldb, int64_t ldd) {
  EXPECT_EQ(p.m, m);
  EXPECT_EQ(p.n, n);
  EXPECT_EQ(p.k, k);
  EXPECT_EQ(p.lda, lda);
  EXPECT_EQ(p.ldb, ldb);
  EXPECT_EQ(p.ldd, ldd);
}

TEST(LtProblemTest, ForwardIsTransposedByTheOrderOfOperands) {
  const LtProblem p = Problem(Forward());
  ExpectShape(p, 128, 32, 784, 128, 784, 128);
  EXPECT_EQ(p.op_a, CUBLAS_OP_N);
  EXPECT_EQ(p.op_b, CUBLAS_OP_N);
  EXPECT_EQ(p.epilogue, CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
  EXPECT_EQ(p.mask_ld, 128);
}

TEST(LtProblemTest, GradientOfTheInputReadsTheMask) {
  const LtProblem p = Problem(InputGradient());
  ExpectShape(p, 128, 32, 10, 10, 10, 128);
  EXPECT_EQ(p.op_a, CUBLAS_OP_T);
  EXPECT_EQ(p.op_b, CUBLAS_OP_N);
  EXPECT_EQ(p.epilogue, CUBLASLT_EPILOGUE_DRELU_BGRAD);
}

TEST(LtProblemTest, GradientOfWeightsSumsItsFirstOperand) {
  const LtProblem p = Problem(WeightGradient());
  ExpectShape(p, 128, 784, 32, 128, 784, 128);
  EXPECT_EQ(p.op_a, CUBLAS_OP_N);  // as BGRADA wants it
  EXPECT_EQ(p.op_b, CUBLAS_OP_T);
  EXPECT_EQ(p.epilogue, CUBLASLT_EPILOGUE_BGRADA);
  EXPECT_EQ(p.mask_ld, 0);
}

TEST(LtProblemTest, MaskRowsAreWholeVectors) {
  CudaMatMul matmul = Forward();
  matmul.n = 129;
  EXPECT_EQ(Problem(matmul).mask_ld, 256);
}

TEST(LtProblemTest, MathChoosesTheComputeType) {
  CudaMatMul matmul = Forward();
  EXPECT_EQ(Problem(matmul).compute, CUBLAS_COMPUTE_32F);
  matmul.math = MathMode::kTf32;
  EXPECT_EQ(Problem(matmul).compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  matmul.math = MathMode::kBf16;
  EXPECT_EQ(Problem(matmul).compute, CUBLAS_COMPUTE_32F_FAST_16BF);
}

TEST(LtProblemTest, ModelsAreABatch) {
  CudaMatMul matmul = Forward();
  EXPECT_EQ(Problem(matmul).models, 1);
  matmul.models = 5;
  LtProblem p = Problem(matmul);
  EXPECT_EQ(p.models, 5);
  EXPECT_EQ(p.stride_a, 784 * 128);  // its A is b
  EXPECT_EQ(p.stride_b, 32 * 784);
  EXPECT_EQ(p.stride_d, 32 * 128);
  EXPECT_EQ(p.vector_stride, 128);
  EXPECT_EQ(p.mask_stride, 32 * 128);
  matmul.shared_a = true;
  EXPECT_EQ(Problem(matmul).stride_b, 0);
}

TEST(LtProblemTest, RefusesVectorsOfModelsThatAreNotAligned) {
  const CudaMatMul matmul{
      .m = 32, .n = 10, .k = 128, .bias = true, .models = 5};
  EXPECT_THAT(
      ToLtProblem(matmul).status(),
      StatusIs(absl::StatusCode::kUnimplemented,
               HasSubstr("5x matmul 32x10x128 fp32 bias: no epilogue of "
                         "cublasLt takes a model's vector that is not "
                         "aligned to 16 bytes")));
}

TEST(LtProblemTest, RefusesWhatNoEpilogueDoes) {
  const CudaMatMul sums_of_transposed{
      .m = 4, .n = 8, .k = 2, .trans_b = true, .column_sums = true};
  EXPECT_THAT(ToLtProblem(sums_of_transposed).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("matmul 4x8x2 fp32 nt bgrad: no epilogue")));
  const CudaMatMul mask_and_bias{
      .m = 4, .n = 8, .k = 2, .bias = true, .mask_in = true};
  EXPECT_THAT(ToLtProblem(mask_and_bias).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("a mask and a bias")));
  const CudaMatMul mask_of_nothing{.m = 4, .n = 8, .k = 2, .mask_out = true};
  EXPECT_THAT(ToLtProblem(mask_of_nothing).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("a mask without a relu")));
}

TEST(LtAlignmentTest, IsThatOfARow) {
  EXPECT_EQ(LtAlignment(784), 64);  // 3136 bytes
  EXPECT_EQ(LtAlignment(10), 8);    // 40 bytes
  EXPECT_EQ(LtAlignment(7), 4);
  EXPECT_EQ(LtAlignment(4096), 256);  // as aligned as memory is
}

TEST(CudaMatMulTest, ToStringNamesShapeAndEpilogue) {
  EXPECT_EQ(Forward().ToString(), "matmul 32x128x784 fp32 relu_aux_bias");
  EXPECT_EQ(WeightGradient().ToString(),
            "matmul 784x128x32 fp32 tn bgrad accumulate");
}

// Descriptors need the library and no device.
class LtDescriptorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<const LtFunctions*> lt = LoadCublasLt();
    if (!lt.ok()) GTEST_SKIP() << lt.status();
    lt_ = *lt;
  }

  template <typename T>
  T Get(const LtDescriptors& d, cublasLtMatmulDescAttributes_t attribute) {
    T value = {};
    size_t written = 0;
    EXPECT_EQ(lt_->cublasLtMatmulDescGetAttribute(
                  d.operation(), attribute, &value, sizeof(value), &written),
              CUBLAS_STATUS_SUCCESS);
    return value;
  }

  const LtFunctions* lt_ = nullptr;
};

TEST_F(LtDescriptorsTest, HoldWhatTheProblemSays) {
  const auto d = LtDescriptors::Create(*lt_, Problem(Forward()));
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(Get<int32_t>(**d, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE),
            CUBLAS_COMPUTE_32F);
  EXPECT_EQ(Get<int32_t>(**d, CUBLASLT_MATMUL_DESC_POINTER_MODE),
            CUBLASLT_POINTER_MODE_DEVICE);
  EXPECT_EQ(Get<uint32_t>(**d, CUBLASLT_MATMUL_DESC_EPILOGUE),
            CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
  EXPECT_EQ(Get<int64_t>(**d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD), 128);
}

TEST_F(LtDescriptorsTest, HoldTheModelsAsABatch) {
  CudaMatMul matmul = Forward();
  matmul.models = 5;
  matmul.shared_a = true;
  const auto d = LtDescriptors::Create(*lt_, Problem(matmul));
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(Get<int64_t>(**d, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE), 128);
  EXPECT_EQ(Get<int64_t>(**d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE),
            32 * 128);
}

TEST_F(LtDescriptorsTest, TakeThePointersOfEachRun) {
  const auto d = LtDescriptors::Create(*lt_, Problem(Forward()));
  ASSERT_TRUE(d.ok()) << d.status();
  alignas(16) float bias[4], mask[4];
  ASSERT_TRUE((*d)->SetPointers(bias, mask).ok());
  EXPECT_EQ(Get<void*>(**d, CUBLASLT_MATMUL_DESC_BIAS_POINTER), bias);
  EXPECT_EQ(Get<void*>(**d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER), mask);
}

TEST_F(LtDescriptorsTest, AreMadeForEveryMatMulOfAStep) {
  for (const CudaMatMul& matmul :
       {Forward(), InputGradient(), WeightGradient()}) {
    const auto d = LtDescriptors::Create(*lt_, Problem(matmul));
    EXPECT_TRUE(d.ok()) << matmul.ToString() << ": " << d.status();
  }
}

}  // namespace
}  // namespace onestep
