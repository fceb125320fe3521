// SPDX-License-Identifier: Apache-2.0
// What cuda_api.h promises, held against CUDA on a device and against the
// emulator that stands in for it: one source, two programs.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/hidden_split/hidden_split.h"
#include "kernels/probe_launch.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_handle.h"
#include "tests/require_cuda.h"
#include "tests/runtime/cuda_under_test.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::Field;

constexpr int64_t kWorkspaceBytes = int64_t{4} << 20;

class CudaConformanceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status device = cuda_.Device().status();
    if (!device.ok()) {
      ASSERT_FALSE(CudaIsRequired()) << device;
      GTEST_SKIP() << device;
    }
    ASSERT_OK_AND_ASSIGN(stream_, Own<CudaStream>(cuda_, cuda_.CreateStream()));
  }

  CudaApi::Stream stream() const { return stream_.get(); }

  template <typename T>
  CudaMemory Upload(const std::vector<T>& values) {
    const int64_t bytes = values.size() * sizeof(T);
    auto memory = Own<CudaMemory>(cuda_, cuda_.Malloc(bytes));
    EXPECT_OK(memory);
    if (!memory.ok()) return {};
    EXPECT_OK(
        cuda_.CopyToDevice(memory->get(), values.data(), bytes, stream()));
    EXPECT_OK(cuda_.Synchronize(stream()));
    return *std::move(memory);
  }

  template <typename T>
  std::vector<T> Download(const CudaMemory& memory, int64_t count) {
    std::vector<T> values(count);
    EXPECT_OK(cuda_.CopyToHost(values.data(), memory.get(), count * sizeof(T),
                               stream()));
    EXPECT_OK(cuda_.Synchronize(stream()));
    return values;
  }

  void Run(CudaApi::Graph graph) {
    ASSERT_OK_AND_ASSIGN(
        const CudaGraphExec exec,
        Own<CudaGraphExec>(cuda_, cuda_.Instantiate(graph, stream())));
    ASSERT_OK(cuda_.LaunchGraph(exec.get(), stream()));
    ASSERT_OK(cuda_.Synchronize(stream()));
  }

  CudaApi& cuda_ = CudaUnderTest();
  CudaStream stream_;
};

float* Floats(const CudaMemory& memory) {
  return static_cast<float*>(memory.get());
}

std::vector<float> Values(int64_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / (1 << 23) - 1;
  }
  return values;
}

TEST_F(CudaConformanceTest, KernelsRunInTheOrderOfTheStream) {
  const std::vector<float> values = Values(1000, 1);
  const CudaMemory x = Upload(values);
  const CudaMemory y = Upload(std::vector<float>(1000));
  const CudaMemory z = Upload(std::vector<float>(1000));
  const Launch first = cuda::ProbeCopy(Floats(x), Floats(y), 1000);
  const Launch second = cuda::ProbeCopy(Floats(y), Floats(z), 1000);
  ASSERT_OK(cuda_.Preload(first));
  ASSERT_OK(cuda_.LaunchKernel(first, stream()));
  ASSERT_OK(cuda_.LaunchKernel(second, stream()));
  EXPECT_EQ(Download<float>(z, 1000), values);
}

TEST_F(CudaConformanceTest, ANodeRunsAfterThoseItHasEdgesFrom) {
  const std::vector<float> values = Values(1000, 2);
  const CudaMemory x = Upload(values);
  const CudaMemory y = Upload(std::vector<float>(1000));
  const CudaMemory z = Upload(std::vector<float>(1000));
  const Launch first = cuda::ProbeCopy(Floats(x), Floats(y), 1000);
  const Launch second = cuda::ProbeCopy(Floats(y), Floats(z), 1000);
  ASSERT_OK(cuda_.Preload(first));
  ASSERT_OK_AND_ASSIGN(const CudaGraph graph,
                       Own<CudaGraph>(cuda_, cuda_.CreateGraph()));
  ASSERT_OK_AND_ASSIGN(const CudaApi::Node node,
                       cuda_.AddKernel(graph.get(), {}, first));
  ASSERT_OK(cuda_.AddKernel(graph.get(), {{node}}, second).status());
  Run(graph.get());
  EXPECT_EQ(Download<float>(z, 1000), values);
}

TEST_F(CudaConformanceTest, ProgrammaticEdgesJoinKernelsThatWait) {
  const Launch launch = cuda::ProbeEmpty(/*waits=*/true);
  ASSERT_OK(cuda_.Preload(launch));
  ASSERT_OK_AND_ASSIGN(const CudaGraph graph,
                       Own<CudaGraph>(cuda_, cuda_.CreateGraph()));
  std::vector<CudaApi::Edge> edges;
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const CudaApi::Node node,
                         cuda_.AddKernel(graph.get(), edges, launch));
    edges = {{node, /*programmatic=*/true}};
  }
  Run(graph.get());
  ASSERT_OK_AND_ASSIGN(const std::vector<CudaApi::NodeInfo> nodes,
                       cuda_.Nodes(graph.get()));
  EXPECT_EQ(nodes.size(), 5);
  EXPECT_THAT(nodes, Each(Field(&CudaApi::NodeInfo::kind, "kernel")));
  EXPECT_THAT(nodes, Each(Field(&CudaApi::NodeInfo::name, launch.name)));
}

TEST_F(CudaConformanceTest, AClusterOfTwoBlocksFits) {
  ASSERT_OK_AND_ASSIGN(const CudaDevice device, cuda_.Device());
  if (device.compute_major < 9) GTEST_SKIP() << "no clusters";
  const cuda::HiddenSplitPlan plan = cuda::PlanHiddenSplit(
      CudaTier::kPersistent,
      {.batch = 4, .features = 16, .hidden = 16, .classes = 3}, {});
  ASSERT_EQ(plan.blocks, 2) << plan.refusal;
  const Launch launch = cuda::HiddenSplitPersistent(plan, {}, 0, 1, {});
  ASSERT_OK(cuda_.Preload(launch));
  ASSERT_OK_AND_ASSIGN(const int active, cuda_.MaxActiveClusters(launch));
  EXPECT_GE(active, 1);
}

// y as CudaMatMul says, without masks and sums, in fp64.
std::vector<double> Reference(const CudaMatMul& x, const std::vector<float>& a,
                              const std::vector<float>& b,
                              const std::vector<float>& bias,
                              const std::vector<float>& y) {
  std::vector<double> out(x.m * x.n);
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      double sum = x.bias ? bias[j] : 0;
      for (int64_t p = 0; p < x.k; ++p) {
        sum += double{a[x.trans_a ? p * x.m + i : i * x.k + p]} *
               b[x.trans_b ? j * x.k + p : p * x.n + j];
      }
      if (x.accumulate) sum += y[i * x.n + j];
      out[i * x.n + j] = x.relu && sum < 0 ? 0 : sum;
    }
  }
  return out;
}

class CudaMatMulConformanceTest : public CudaConformanceTest {
 protected:
  void SetUp() override {
    CudaConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const absl::Status library = cuda_.MatMulLibrary().status();
    if (!library.ok()) GTEST_SKIP() << library;
    ASSERT_OK_AND_ASSIGN(workspace_,
                         Own<CudaMemory>(cuda_, cuda_.Malloc(kWorkspaceBytes)));
  }

  // False, and said: the library has no such epilogue, and need not have it.
  bool RunMatMul(const CudaMatMul& matmul, const CudaMatMulOperands& operands) {
    const absl::StatusOr<CudaMatMulPlan> plan = Own<CudaMatMulPlan>(
        cuda_,
        cuda_.PlanMatMul(matmul, workspace_.get(), kWorkspaceBytes, stream()));
    const bool plain = !matmul.relu && !matmul.mask_in && !matmul.column_sums;
    if (!plain && absl::IsUnimplemented(plan.status())) {
      std::printf("NOT TESTED: %s\n", plan.status().ToString().c_str());
      return false;
    }
    EXPECT_OK(plan);
    if (!plan.ok()) return false;
    EXPECT_NE(cuda_.Describe(plan->get()), "");
    EXPECT_OK(cuda_.RunMatMul(plan->get(), operands, stream()));
    EXPECT_OK(cuda_.Synchronize(stream()));
    return true;
  }

  // Sums of k products below 1, in fp32: k of their roundings at the most.
  static void ExpectClose(const std::vector<float>& got,
                          const std::vector<double>& want, int64_t k) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-7 * (k + 2)) << "at " << i;
    }
  }

  void ExpectAsReference(const CudaMatMul& x) {
    SCOPED_TRACE(x.ToString());
    const auto a = Values(x.m * x.k, 1), b = Values(x.k * x.n, 2);
    const auto bias = Values(x.n, 3), y = Values(x.m * x.n, 4);
    const CudaMemory device_a = Upload(a), device_b = Upload(b);
    const CudaMemory device_bias = Upload(bias), device_y = Upload(y);
    if (!RunMatMul(x, {.a = Floats(device_a),
                       .b = Floats(device_b),
                       .y = Floats(device_y),
                       .bias = x.bias ? Floats(device_bias) : nullptr})) {
      return;
    }
    ExpectClose(Download<float>(device_y, x.m * x.n),
                Reference(x, a, b, bias, y), x.k);
  }

  CudaMemory workspace_;
};

TEST_F(CudaMatMulConformanceTest, EveryTransposition) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      ExpectAsReference(
          {.m = 32, .n = 48, .k = 20, .trans_a = trans_a, .trans_b = trans_b});
    }
  }
}

TEST_F(CudaMatMulConformanceTest, EpiloguesAndSums) {
  ExpectAsReference({.m = 32, .n = 128, .k = 784, .bias = true});
  ExpectAsReference({.m = 32, .n = 128, .k = 784, .bias = true, .relu = true});
  ExpectAsReference({.m = 32, .n = 12, .k = 128, .relu = true});
  ExpectAsReference(
      {.m = 784, .n = 128, .k = 32, .trans_a = true, .accumulate = true});
}

TEST_F(CudaMatMulConformanceTest, TheMaskOfAReluGatesItsGradient) {
  const CudaMatMul forward = {
      .m = 32, .n = 128, .k = 16, .bias = true, .relu = true, .mask_out = true};
  const CudaMatMul backward = {.m = 32,
                               .n = 128,
                               .k = 12,
                               .trans_b = true,
                               .mask_in = true,
                               .column_sums = true};
  const auto x = Values(32 * 16, 1), w = Values(16 * 128, 2);
  const auto bias = Values(128, 3), d = Values(32 * 12, 4);
  const auto w2 = Values(128 * 12, 5);
  const CudaMemory device_x = Upload(x), device_w = Upload(w);
  const CudaMemory device_bias = Upload(bias), device_d = Upload(d);
  const CudaMemory device_w2 = Upload(w2);
  const CudaMemory h = Upload(std::vector<float>(32 * 128));
  const CudaMemory e = Upload(std::vector<float>(32 * 128));
  const CudaMemory sums = Upload(std::vector<float>(128));
  const CudaMemory mask = Upload(std::vector<uint8_t>(32 * 128 / 8));
  const bool ran = RunMatMul(forward, {.a = Floats(device_x),
                                       .b = Floats(device_w),
                                       .y = Floats(h),
                                       .bias = Floats(device_bias),
                                       .mask = mask.get()}) &&
                   RunMatMul(backward, {.a = Floats(device_d),
                                        .b = Floats(device_w2),
                                        .y = Floats(e),
                                        .mask = mask.get(),
                                        .column_sums = Floats(sums)});
  if (!ran) return;
  const auto h_values = Download<float>(h, 32 * 128);
  ExpectClose(h_values, Reference(forward, x, w, bias, {}), 16);
  std::vector<double> want = Reference(backward, d, w2, {}, {});
  std::vector<double> want_sums(128);
  for (int64_t i = 0; i < 32 * 128; ++i) {
    if (h_values[i] <= 0) want[i] = 0;
    want_sums[i % 128] += want[i];
  }
  ExpectClose(Download<float>(e, 32 * 128), want, 12);
  ExpectClose(Download<float>(sums, 128), want_sums, 12 * 32);
}

TEST_F(CudaMatMulConformanceTest, GradientOfWeightsInPlaceWithTheBiass) {
  const CudaMatMul matmul = {.m = 784,
                             .n = 128,
                             .k = 32,
                             .trans_a = true,
                             .accumulate = true,
                             .column_sums = true};
  const auto x = Values(32 * 784, 1), e = Values(32 * 128, 2);
  const auto w = Values(784 * 128, 3);
  const CudaMemory device_x = Upload(x), device_e = Upload(e);
  const CudaMemory device_w = Upload(w);
  const CudaMemory sums = Upload(std::vector<float>(128));
  if (!RunMatMul(matmul, {.a = Floats(device_x),
                          .b = Floats(device_e),
                          .y = Floats(device_w),
                          .column_sums = Floats(sums)})) {
    return;
  }
  ExpectClose(Download<float>(device_w, 784 * 128),
              Reference(matmul, x, e, {}, w), 32);
  std::vector<double> want(128);
  for (int64_t i = 0; i < 32 * 128; ++i) want[i % 128] += e[i];
  ExpectClose(Download<float>(sums, 128), want, 32);
}

// Three of each operand, one after the other, against each alone.
TEST_F(CudaMatMulConformanceTest, ManyModelsAreAsEachAlone) {
  constexpr int64_t kModels = 3, kM = 32, kN = 128, kK = 20;
  const CudaMatMul forward = {.bias = true, .relu = true, .mask_out = true};
  const CudaMatMul backward = {
      .trans_b = true, .mask_in = true, .column_sums = true};
  const CudaMatMul update = {
      .trans_a = true, .accumulate = true, .column_sums = true};
  for (CudaMatMul one : {CudaMatMul(), forward, backward, update}) {
    one.m = kM, one.n = kN, one.k = kK;
    for (const bool shared_a : {false, true}) {
      CudaMatMul all = one;
      all.models = kModels;
      all.shared_a = shared_a;
      SCOPED_TRACE(all.ToString());
      const bool masks = all.mask_in || all.mask_out;
      std::vector<uint8_t> bits(kModels * kM * kN / 8);
      for (size_t i = 0; i < bits.size(); ++i) bits[i] = 37 * i;
      const auto y = Values(kModels * kM * kN, 4);
      const CudaMemory a = Upload(Values(kModels * kM * kK, 1));
      const CudaMemory b = Upload(Values(kModels * kK * kN, 2));
      const CudaMemory bias = Upload(Values(kModels * kN, 3));
      const CudaMemory together = Upload(y), apart = Upload(y);
      const CudaMemory together_mask = Upload(bits), apart_mask = Upload(bits);
      const CudaMemory together_sums = Upload(Values(kModels * kN, 5));
      const CudaMemory apart_sums = Upload(Values(kModels * kN, 5));
      const auto operands = [&](int64_t model, const CudaMemory& to,
                                const CudaMemory& mask,
                                const CudaMemory& sums) {
        const int64_t of_a = shared_a ? 0 : model;
        return CudaMatMulOperands{
            .a = Floats(a) + of_a * kM * kK,
            .b = Floats(b) + model * kK * kN,
            .y = Floats(to) + model * kM * kN,
            .bias = all.bias ? Floats(bias) + model * kN : nullptr,
            .mask = masks ? static_cast<char*>(mask.get()) + model * kM * kN / 8
                          : nullptr,
            .column_sums =
                all.column_sums ? Floats(sums) + model * kN : nullptr};
      };
      if (!RunMatMul(all, operands(0, together, together_mask, together_sums)))
        continue;
      for (int64_t m = 0; m < kModels; ++m) {
        ASSERT_TRUE(RunMatMul(one, operands(m, apart, apart_mask, apart_sums)));
      }
      const auto as_want = [](const std::vector<float>& values) {
        return std::vector<double>(values.begin(), values.end());
      };
      ExpectClose(Download<float>(together, kModels * kM * kN),
                  as_want(Download<float>(apart, kModels * kM * kN)), kK);
      ExpectClose(Download<float>(together_sums, kModels * kN),
                  as_want(Download<float>(apart_sums, kModels * kN)), kK * kM);
      EXPECT_EQ(Download<uint8_t>(together_mask, kModels * kM * kN / 8),
                Download<uint8_t>(apart_mask, kModels * kM * kN / 8));
    }
  }
}

TEST_F(CudaMatMulConformanceTest, ACapturedMatMulCanBeAChildGraph) {
  const CudaMatMul matmul = {.m = 32, .n = 64, .k = 16};
  const auto a = Values(32 * 16, 1), b = Values(16 * 64, 2);
  const CudaMemory device_a = Upload(a), device_b = Upload(b);
  const CudaMemory y = Upload(std::vector<float>(32 * 64));
  ASSERT_OK_AND_ASSIGN(
      const CudaMatMulPlan plan,
      Own<CudaMatMulPlan>(cuda_, cuda_.PlanMatMul(matmul, workspace_.get(),
                                                  kWorkspaceBytes, stream())));
  ASSERT_OK(cuda_.BeginCapture(stream()));
  EXPECT_OK(cuda_.RunMatMul(
      plan.get(),
      {.a = Floats(device_a), .b = Floats(device_b), .y = Floats(y)},
      stream()));
  ASSERT_OK_AND_ASSIGN(const CudaGraph child,
                       Own<CudaGraph>(cuda_, cuda_.EndCapture(stream())));
  ASSERT_OK_AND_ASSIGN(const std::vector<CudaApi::NodeInfo> nodes,
                       cuda_.Nodes(child.get()));
  EXPECT_THAT(nodes,
              Each(Field(&CudaApi::NodeInfo::kind, AnyOf("kernel", "memset"))));
  ASSERT_OK_AND_ASSIGN(const CudaGraph graph,
                       Own<CudaGraph>(cuda_, cuda_.CreateGraph()));
  ASSERT_OK(cuda_.AddChildGraph(graph.get(), {}, child.get()).status());
  Run(graph.get());
  ExpectClose(Download<float>(y, 32 * 64), Reference(matmul, a, b, {}, {}), 16);
}

}  // namespace
}  // namespace onestep
