// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "kernels/probe_launch.h"
#include "runtime/base/status.h"
#include "runtime/cuda/cuda_handle.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;
using Work = absl::FunctionRef<absl::Status()>;
using Sample = absl::FunctionRef<absl::StatusOr<double>()>;

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

// The time of one of `count` equal pieces of work that take `ms` together.
double ToNanoseconds(double ms, double count) { return ms * 1e6 / count; }

class Prober {
 public:
  Prober(CudaApi& cuda, const CudaProbeOptions& options)
      : cuda_(cuda), options_(options) {}

  absl::StatusOr<CudaProbe> Run();

 private:
  absl::Status GraphChain(bool overlap);
  absl::Status Launches();
  absl::Status Copies();
  absl::Status MatMuls();
  absl::Status MatMulIn(MathMode math, void* workspace, const float* a,
                        const float* b, float* y);

  // Adds a row with the median of the samples, after one sample to warm up.
  absl::Status Add(const std::string& name, const std::string& unit,
                   Sample sample);
  void Skip(const std::string& name, const std::string& unit,
            const absl::Status& why);
  // Device time from before to after `work`'s launches.
  absl::StatusOr<double> Milliseconds(Work work);
  // CPU time of `work`, without the wait for the device.
  absl::StatusOr<double> CpuNanoseconds(Work work);

  CudaApi& cuda_;
  const CudaProbeOptions& options_;
  CudaProbe probe_;
  CudaEvent start_, stop_;
  CudaStream stream_;
};

absl::StatusOr<double> Prober::CpuNanoseconds(Work work) {
  const auto begin = Clock::now();
  RETURN_IF_ERROR(work());
  const std::chrono::duration<double, std::nano> ns = Clock::now() - begin;
  RETURN_IF_ERROR(cuda_.Synchronize(stream_.get()));
  return ns.count();
}

absl::StatusOr<double> Prober::Milliseconds(Work work) {
  RETURN_IF_ERROR(cuda_.Record(start_.get(), stream_.get()));
  RETURN_IF_ERROR(work());
  RETURN_IF_ERROR(cuda_.Record(stop_.get(), stream_.get()));
  RETURN_IF_ERROR(cuda_.Synchronize(stream_.get()));
  ASSIGN_OR_RETURN(const float ms, cuda_.Elapsed(start_.get(), stop_.get()));
  return ms;
}

absl::Status Prober::Add(const std::string& name, const std::string& unit,
                         Sample sample) {
  RETURN_IF_ERROR(sample().status());
  std::vector<double> values;
  for (int i = 0; i < options_.samples; ++i) {
    ASSIGN_OR_RETURN(const double value, sample());
    values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  CudaProbeRow row = {name,           unit,          values[values.size() / 2],
                      values.front(), values.back(), ""};
  if (!std::isfinite(row.value) || row.value <= 0) {
    row.doubt = "not above 0";
  } else if (row.value > 2 * row.low) {
    row.doubt = "the median is more than twice the least";
  }
  probe_.rows.push_back(std::move(row));
  return absl::OkStatus();
}

void Prober::Skip(const std::string& name, const std::string& unit,
                  const absl::Status& why) {
  CudaProbeRow row = {name, unit, 0, 0, 0, std::string(why.message())};
  probe_.rows.push_back(std::move(row));
}

absl::Status Prober::GraphChain(bool overlap) {
  const Launch launch = cuda::ProbeEmpty(overlap);
  RETURN_IF_ERROR(cuda_.Preload(launch));
  ASSIGN_OR_RETURN(const CudaGraph graph,
                   Own<CudaGraph>(cuda_, cuda_.CreateGraph()));
  std::vector<CudaApi::Edge> edges;
  for (int i = 0; i < kProbedChain; ++i) {
    ASSIGN_OR_RETURN(const CudaApi::Node node,
                     cuda_.AddKernel(graph.get(), edges, launch));
    edges = {{node, overlap}};
  }
  ASSIGN_OR_RETURN(
      const CudaGraphExec exec,
      Own<CudaGraphExec>(cuda_, cuda_.Instantiate(graph.get(), stream_.get())));
  const int repeats = std::max(5, options_.launches / kProbedChain);
  const auto launches = [&]() -> absl::Status {
    for (int i = 0; i < repeats; ++i) {
      RETURN_IF_ERROR(cuda_.LaunchGraph(exec.get(), stream_.get()));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(
      Add(absl::StrCat(kGraphNodeRow, overlap ? ", programmatic edges" : ""),
          "ns", [&]() -> absl::StatusOr<double> {
            ASSIGN_OR_RETURN(const double ms, Milliseconds(launches));
            return ToNanoseconds(ms, 1.0 * repeats * kProbedChain);
          }));
  if (overlap) return absl::OkStatus();
  return Add(kGraphLaunchRow, "ns", [&]() -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const double ns, CpuNanoseconds(launches));
    return ns / repeats;
  });
}

absl::Status Prober::Launches() {
  const Launch launch = cuda::ProbeEmpty(false);
  const auto launches = [&]() -> absl::Status {
    for (int i = 0; i < options_.launches; ++i) {
      RETURN_IF_ERROR(cuda_.LaunchKernel(launch, stream_.get()));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(Add(kStreamLaunchRow, "ns", [&]() -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const double ms, Milliseconds(launches));
    return ToNanoseconds(ms, options_.launches);
  }));
  return Add("CPU time of a kernel launch", "ns",
             [&]() -> absl::StatusOr<double> {
               ASSIGN_OR_RETURN(const double ns, CpuNanoseconds(launches));
               return ns / options_.launches;
             });
}

absl::Status Prober::Copies() {
  const int64_t bytes = options_.copy_bytes;
  ASSIGN_OR_RETURN(const CudaPinnedMemory host,
                   Own<CudaPinnedMemory>(cuda_, cuda_.MallocHost(bytes)));
  ASSIGN_OR_RETURN(const CudaMemory x,
                   Own<CudaMemory>(cuda_, cuda_.Malloc(bytes)));
  ASSIGN_OR_RETURN(const CudaMemory y,
                   Own<CudaMemory>(cuda_, cuda_.Malloc(bytes)));
  RETURN_IF_ERROR(cuda_.Memset(x.get(), 0, bytes, stream_.get()));
  const auto add = [&](const std::string& name, double moved, Work work) {
    return Add(name, "GB/s", [&]() -> absl::StatusOr<double> {
      ASSIGN_OR_RETURN(const double ms, Milliseconds(work));
      return moved / ms / 1e6;
    });
  };
  RETURN_IF_ERROR(add(kToDeviceRow, bytes, [&] {
    return cuda_.CopyToDevice(x.get(), host.get(), bytes, stream_.get());
  }));
  const Launch copy = cuda::ProbeCopy(
      static_cast<const float*>(x.get()), static_cast<float*>(y.get()),
      bytes / static_cast<int64_t>(sizeof(float)));
  RETURN_IF_ERROR(cuda_.Preload(copy));
  return add(kDeviceMemoryRow, 2.0 * bytes,
             [&] { return cuda_.LaunchKernel(copy, stream_.get()); });
}

absl::Status Prober::MatMuls() {
  const absl::StatusOr<std::string> library = cuda_.MatMulLibrary();
  if (!library.ok()) {
    Skip("matmul", "TFLOP/s", library.status());
    return absl::OkStatus();
  }
  probe_.matmul_library = *library;
  const int64_t elements = options_.matmul * options_.matmul;
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(float));
  // Random values: a GPU clocks higher on matrices of equal values.
  std::vector<float> values(elements);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes, ch. 7.1
    value = static_cast<float>(state >> 8) / (1 << 23) - 1;
  }
  std::vector<CudaMemory> memory;
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(CudaMemory matrix,
                     Own<CudaMemory>(cuda_, cuda_.Malloc(bytes)));
    RETURN_IF_ERROR(
        cuda_.CopyToDevice(matrix.get(), values.data(), bytes, stream_.get()));
    memory.push_back(std::move(matrix));
  }
  RETURN_IF_ERROR(cuda_.Synchronize(stream_.get()));
  ASSIGN_OR_RETURN(const CudaMemory workspace,
                   Own<CudaMemory>(cuda_, cuda_.Malloc(kWorkspaceBytes)));
  for (const MathMode math :
       {MathMode::kFp32, MathMode::kTf32, MathMode::kBf16}) {
    RETURN_IF_ERROR(MatMulIn(math, workspace.get(),
                             static_cast<const float*>(memory[0].get()),
                             static_cast<const float*>(memory[1].get()),
                             static_cast<float*>(memory[2].get())));
  }
  return absl::OkStatus();
}

absl::Status Prober::MatMulIn(MathMode math, void* workspace, const float* a,
                              const float* b, float* y) {
  const int64_t n = options_.matmul;
  const CudaMatMul matmul = {.m = n, .n = n, .k = n, .math = math};
  absl::StatusOr<CudaMatMulPlan> plan = Own<CudaMatMulPlan>(
      cuda_,
      cuda_.PlanMatMul(matmul, workspace, kWorkspaceBytes, stream_.get()));
  if (absl::IsUnimplemented(plan.status())) {
    Skip(matmul.ToString(), "TFLOP/s", plan.status());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(plan.status());
  const CudaMatMulOperands operands = {.a = a, .b = b, .y = y};
  return Add(matmul.ToString(), "TFLOP/s", [&]() -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const double ms, Milliseconds([&] {
                       return cuda_.RunMatMul(plan->get(), operands,
                                              stream_.get());
                     }));
    return 2.0 * n * n * n / ms / 1e9;
  });
}

absl::StatusOr<CudaProbe> Prober::Run() {
  ASSIGN_OR_RETURN(probe_.device, cuda_.Device());
  ASSIGN_OR_RETURN(stream_, Own<CudaStream>(cuda_, cuda_.CreateStream()));
  ASSIGN_OR_RETURN(start_, Own<CudaEvent>(cuda_, cuda_.CreateEvent()));
  ASSIGN_OR_RETURN(stop_, Own<CudaEvent>(cuda_, cuda_.CreateEvent()));
  RETURN_IF_ERROR(GraphChain(/*overlap=*/false));
  RETURN_IF_ERROR(GraphChain(/*overlap=*/true));
  RETURN_IF_ERROR(Launches());
  RETURN_IF_ERROR(Copies());
  RETURN_IF_ERROR(MatMuls());
  return std::move(probe_);
}

}  // namespace

absl::StatusOr<CudaProbe> RunCudaProbe(CudaApi& cuda,
                                       const CudaProbeOptions& options) {
  return Prober(cuda, options).Run();
}

}  // namespace onestep
