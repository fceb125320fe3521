// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/emulated_matmul.h"

#include <cmath>
#include <string>

#include "tests/cuda_emulator/emulated_cuda.h"
#include "tests/cuda_emulator/emulated_cuda_fixture.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<float> Values(const float* x, int64_t n) { return {x, x + n}; }

struct EmulatedMatMulTest : EmulatedCudaTest {
  // Plans, runs and waits.
  absl::Status Run(const CudaMatMul& matmul,
                   const CudaMatMulOperands& operands) {
    const auto plan = cuda.PlanMatMul(matmul, workspace, 256, stream);
    if (!plan.ok()) return plan.status();
    const absl::Status status = cuda.RunMatMul(*plan, operands, stream);
    cuda.DestroyMatMulPlan(*plan);
    return status.ok() ? cuda.Synchronize(stream) : status;
  }

  void* const workspace = cuda.Malloc(256).value();
  // [[1 2 3] [4 5 6]] and [[1 0] [0 1] [1 -1]], and both transposed.
  const float* const a = Device({1, 2, 3, 4, 5, 6});
  const float* const a_t = Device({1, 4, 2, 5, 3, 6});
  const float* const b = Device({1, 0, 0, 1, 1, -1});
  const float* const b_t = Device({1, 0, 1, 0, 1, -1});
  const CudaMatMul plain = {.m = 2, .n = 2, .k = 3};
  float* const y = Device(4, 0);  // a b = [[4 -1] [10 -1]]
};

TEST_F(EmulatedMatMulTest, MultipliesWithAnyTransposes) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      CudaMatMul matmul = plain;
      matmul.trans_a = trans_a;
      matmul.trans_b = trans_b;
      std::fill(y, y + 4, NAN);
      ASSERT_OK(Run(matmul,
                    {.a = trans_a ? a_t : a, .b = trans_b ? b_t : b, .y = y}));
      EXPECT_THAT(Values(y, 4), ElementsAre(4, -1, 10, -1));
    }
  }
  EXPECT_THAT(cuda.errors(), IsEmpty());
}

TEST_F(EmulatedMatMulTest, AddsToWhatYHolds) {
  CudaMatMul matmul = plain;
  matmul.accumulate = true;
  std::fill(y, y + 4, 100);
  ASSERT_OK(Run(matmul, {.a = a, .b = b, .y = y}));
  EXPECT_THAT(Values(y, 4), ElementsAre(104, 99, 110, 99));
}

TEST_F(EmulatedMatMulTest, ReluMaskGoesOutAndIn) {
  ASSERT_EQ(MaskColumns(2), 128);
  auto* const mask = static_cast<uint8_t*>(cuda.Malloc(32).value());
  CudaMatMul matmul = plain;
  matmul.bias = matmul.relu = matmul.mask_out = true;
  const float* const bias = Device({-5, 3});
  ASSERT_OK(Run(matmul, {.a = a, .b = b, .y = y, .bias = bias, .mask = mask}));
  EXPECT_THAT(Values(y, 4), ElementsAre(0, 2, 5, 2));
  // Bit j of row i is bit 128 i + j; the others keep their values.
  EXPECT_EQ(mask[0], 0xfe);
  EXPECT_EQ(mask[1], 0xff);
  EXPECT_EQ(mask[16], 0xff);
  mask[16] = 1;

  CudaMatMul masked = plain;
  masked.mask_in = masked.column_sums = true;
  float* const sums = Device(2, 0);
  ASSERT_OK(
      Run(masked, {.a = a, .b = b, .y = y, .mask = mask, .column_sums = sums}));
  EXPECT_THAT(Values(y, 4), ElementsAre(0, -1, 10, 0));
  EXPECT_THAT(Values(sums, 2), ElementsAre(10, -1));
}

TEST_F(EmulatedMatMulTest, ColumnSumsOfBWithTransA) {
  CudaMatMul matmul = plain;
  matmul.trans_a = matmul.column_sums = true;
  float* const sums = Device(2, 0);
  ASSERT_OK(Run(matmul, {.a = a_t, .b = b, .y = y, .column_sums = sums}));
  EXPECT_THAT(Values(y, 4), ElementsAre(4, -1, 10, -1));
  EXPECT_THAT(Values(sums, 2), ElementsAre(2, 0));
}

TEST_F(EmulatedMatMulTest, RoundsOperandsAsTheMathModeSays) {
  const auto square = [&](float v, MathMode math) {
    const float* const x = Device({v});
    float* const xx = Device(1, 0);
    EXPECT_OK(
        Run({.m = 1, .n = 1, .k = 1, .math = math}, {.a = x, .b = x, .y = xx}));
    return *xx;
  };
  const float fine = 1 + 0x1p-12f;  // too fine for tf32
  EXPECT_EQ(square(fine, MathMode::kFp32), fine * fine);
  EXPECT_EQ(square(fine, MathMode::kTf32), 1);
  const float middle = 1 + 0x1p-10f;  // too fine for bf16
  EXPECT_EQ(square(middle, MathMode::kTf32), middle * middle);
  EXPECT_EQ(square(middle, MathMode::kBf16), 1);
  // Halves go to the even neighbour.
  EXPECT_EQ(square(1 + 0x1p-8f, MathMode::kBf16), 1);
  EXPECT_EQ(std::sqrt(square(1 + 0x3p-8f, MathMode::kBf16)), 1 + 0x1p-6f);
  EXPECT_EQ(square(INFINITY, MathMode::kBf16), INFINITY);
}

TEST_F(EmulatedMatMulTest, SumsInDouble) {
  const float* const large = Device({1e8f, 1, -1e8f});
  const float* const ones = Device({1, 1, 1});
  ASSERT_OK(Run({.m = 1, .n = 1, .k = 3}, {.a = large, .b = ones, .y = y}));
  EXPECT_EQ(*y, 1);
}

TEST_F(EmulatedMatMulTest, PlanRefusesWhatTheLibraryLacks) {
  const auto refusal = [&](auto change) {
    CudaMatMul matmul = plain;
    change(matmul);
    return cuda.PlanMatMul(matmul, workspace, 256, stream).status();
  };
  const auto is = [](const std::string& text) {
    return StatusIs(StatusCode::kUnimplemented,
                    HasSubstr("matmul 2x2x3: " + text));
  };
  EXPECT_THAT(refusal([](CudaMatMul& x) { x.mask_out = true; }),
              is("mask_out wants relu"));
  EXPECT_THAT(refusal([](CudaMatMul& x) { x.mask_in = x.bias = true; }),
              is("mask_in goes with neither"));
  EXPECT_THAT(
      refusal([](CudaMatMul& x) { x.trans_a = x.column_sums = x.bias = true; }),
      is("column_sums goes with neither"));
  EXPECT_THAT(refusal([](CudaMatMul& x) { x.column_sums = true; }),
              is("column_sums wants mask_in, or trans_a"));
}

TEST_F(EmulatedMatMulTest, PlanChecksSizesAndWorkspace) {
  const auto is = [](const std::string& text) {
    return StatusIs(StatusCode::kInternal, HasSubstr(text));
  };
  CudaMatMul empty = plain;
  empty.k = 0;
  EXPECT_THAT(cuda.PlanMatMul(empty, workspace, 256, stream),
              is("invalid argument (1): matmul 2x2x0"));
  auto* const bytes = static_cast<unsigned char*>(workspace);
  EXPECT_THAT(cuda.PlanMatMul(plain, bytes + 128, 64, stream),
              is("are not a workspace"));
  EXPECT_THAT(cuda.PlanMatMul(plain, bytes, 257, stream), is("257 bytes at"));
}

TEST(EmulatedMatMulOptionsTest, SomeMatMulsHaveNoAlgorithm) {
  EmulatedCudaOptions options;
  options.no_algorithm = [](const CudaMatMul& m) { return m.n == 10; };
  EmulatedCuda cuda(options);
  const CudaApi::Stream stream = cuda.CreateStream().value();
  EXPECT_THAT(cuda.PlanMatMul({.m = 1, .n = 10, .k = 1}, nullptr, 0, stream),
              StatusIs(StatusCode::kUnimplemented,
                       HasSubstr("matmul 1x10x1: cublasLt has no algorithm")));
  ASSERT_OK_AND_ASSIGN(
      const CudaApi::MatMulPlan plan,
      cuda.PlanMatMul({.m = 1, .n = 9, .k = 1}, nullptr, 0, stream));
  EXPECT_EQ(cuda.Describe(plan), "plain loops");
  EXPECT_THAT(cuda.MatMulLibrary().value(), HasSubstr("cublasLt"));
}

TEST_F(EmulatedMatMulTest, OperandsAreChecked) {
  const auto is = [](const std::string& text) {
    return StatusIs(StatusCode::kInternal, HasSubstr(text));
  };
  float host[6] = {};
  EXPECT_THAT(Run(plain, {.a = host, .b = b, .y = y}),
              is("matmul 2x2x3: want 24 bytes of device memory for a"));
  EXPECT_THAT(Run(plain, {.a = a, .b = b, .y = y + 1}), is("for y, got"));
  EXPECT_THAT(Run(plain, {.a = a, .b = b, .y = y, .bias = b}),
              is("want 0 bytes of device memory for bias"));
  EXPECT_THAT(Run(plain, {.a = a, .b = b, .y = const_cast<float*>(b)}),
              is("y overlaps b"));
  float* const unaligned = Device(6, 0) + 1;
  EXPECT_THAT(Run(plain, {.a = a, .b = b, .y = unaligned}),
              is("want y aligned to 8 bytes"));
  EXPECT_THAT(cuda.RunMatMul(nullptr, {}, stream), is("not a plan"));
}

TEST_F(EmulatedMatMulTest, TheWorkspaceMustOutliveTheGraph) {
  ASSERT_OK_AND_ASSIGN(const CudaApi::MatMulPlan plan,
                       cuda.PlanMatMul(plain, workspace, 256, stream));
  ASSERT_OK(cuda.BeginCapture(stream));
  ASSERT_OK(cuda.RunMatMul(plan, {.a = a, .b = b, .y = y}, stream));
  ASSERT_OK_AND_ASSIGN(const CudaApi::Graph graph, cuda.EndCapture(stream));
  ASSERT_OK_AND_ASSIGN(const CudaApi::GraphExec exec,
                       cuda.Instantiate(graph, stream));
  cuda.Free(workspace);
  EXPECT_THAT(cuda.errors(), IsEmpty());
  ASSERT_OK(cuda.LaunchGraph(exec, stream));
  EXPECT_THAT(
      cuda.Synchronize(stream),
      StatusIs(StatusCode::kInternal, HasSubstr("its workspace was freed")));
}

TEST_F(EmulatedMatMulTest, PlansAndRunsOverwriteTheWorkspace) {
  auto* const bytes = static_cast<unsigned char*>(workspace);
  ASSERT_OK(cuda.Memset(workspace, 1, 256, stream));
  ASSERT_OK_AND_ASSIGN(const CudaApi::MatMulPlan plan,
                       cuda.PlanMatMul(plain, workspace, 256, stream));
  EXPECT_EQ(bytes[255], 0xff);
  ASSERT_OK(cuda.Memset(workspace, 1, 256, stream));
  ASSERT_OK(cuda.RunMatMul(plan, {.a = a, .b = b, .y = y}, stream));
  ASSERT_OK(cuda.Synchronize(stream));
  EXPECT_EQ(bytes[255], 0xff);
}

TEST_F(EmulatedMatMulTest, RunsNotBeforeTheStreamDoes) {
  ASSERT_OK_AND_ASSIGN(const CudaApi::MatMulPlan plan,
                       cuda.PlanMatMul(plain, workspace, 256, stream));
  cuda.log().Mark();
  ASSERT_OK(cuda.RunMatMul(plan, {.a = a, .b = b, .y = y}, stream));
  EXPECT_EQ(*y, 0);
  cuda.Free(workspace);
  EXPECT_THAT(cuda.errors(),
              ElementsAre(HasSubstr("which the kernel matmul 2x2x3 queued")));
  EXPECT_EQ(*y, 4);
  EXPECT_THAT(cuda.log().ToString(),
              HasSubstr("RunMatMul matmul 2x2x3 on stream 1"));
}

}  // namespace
}  // namespace onestep
