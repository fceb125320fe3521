// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/timed_cuda.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "runtime/base/clock.h"

namespace onestep {

class TimedCuda::Timer {
 public:
  explicit Timer(Total& total) : total_(total) {}
  ~Timer() {
    total_.ns += NowNs() - start_;
    ++total_.calls;
  }

 private:
  Total& total_;
  const int64_t start_ = NowNs();
};

// The fastest of a few batches: what disturbs one is no cost of timing.
TimedCuda::TimedCuda(CudaApi& cuda) : cuda_(cuda) {
  constexpr int kBatches = 5, kCalls = 200;
  cost_us_ = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < kBatches; ++batch) {
    Total total;
    const int64_t start = NowNs();
    for (int i = 0; i < kCalls; ++i) const Timer timer(total);
    cost_us_ = std::min(cost_us_, 1e-3 * (NowNs() - start) / kCalls);
  }
}

std::vector<CudaCallStats> TimedCuda::Stats() const {
  static constexpr const char* kNames[] = {
#define ONESTEP_CUDA_CALL(name) #name,
      ONESTEP_CUDA_CALLS(ONESTEP_CUDA_CALL)
#undef ONESTEP_CUDA_CALL
  };
  std::vector<CudaCallStats> stats;
  for (int call = 0; call < kNumCalls; ++call) {
    const auto& [calls, ns] = totals_[call];
    if (calls > 0) stats.push_back({kNames[call], calls, 1e-3 * ns});
  }
  std::ranges::sort(stats, std::greater<>(), &CudaCallStats::total_us);
  return stats;
}

absl::StatusOr<CudaDevice> TimedCuda::Device() {
  const Timer timer(totals_[kDevice]);
  return cuda_.Device();
}

absl::StatusOr<int64_t> TimedCuda::FreeMemory() {
  const Timer timer(totals_[kFreeMemory]);
  return cuda_.FreeMemory();
}

absl::StatusOr<void*> TimedCuda::Malloc(int64_t bytes) {
  const Timer timer(totals_[kMalloc]);
  return cuda_.Malloc(bytes);
}

void TimedCuda::Free(void* device) {
  const Timer timer(totals_[kFree]);
  cuda_.Free(device);
}

absl::StatusOr<void*> TimedCuda::MallocHost(int64_t bytes) {
  const Timer timer(totals_[kMallocHost]);
  return cuda_.MallocHost(bytes);
}

void TimedCuda::FreeHost(void* host) {
  const Timer timer(totals_[kFreeHost]);
  cuda_.FreeHost(host);
}

absl::Status TimedCuda::CopyToDevice(void* device, const void* host,
                                     int64_t bytes, Stream stream) {
  const Timer timer(totals_[kCopyToDevice]);
  return cuda_.CopyToDevice(device, host, bytes, stream);
}

absl::Status TimedCuda::CopyToHost(void* host, const void* device,
                                   int64_t bytes, Stream stream) {
  const Timer timer(totals_[kCopyToHost]);
  return cuda_.CopyToHost(host, device, bytes, stream);
}

absl::Status TimedCuda::Memset(void* device, int value, int64_t bytes,
                               Stream stream) {
  const Timer timer(totals_[kMemset]);
  return cuda_.Memset(device, value, bytes, stream);
}

absl::StatusOr<CudaApi::Stream> TimedCuda::CreateStream() {
  const Timer timer(totals_[kCreateStream]);
  return cuda_.CreateStream();
}

void TimedCuda::DestroyStream(Stream stream) {
  const Timer timer(totals_[kDestroyStream]);
  cuda_.DestroyStream(stream);
}

absl::Status TimedCuda::Synchronize(Stream stream) {
  const Timer timer(totals_[kSynchronize]);
  return cuda_.Synchronize(stream);
}

absl::StatusOr<bool> TimedCuda::Done(Stream stream) {
  const Timer timer(totals_[kDone]);
  return cuda_.Done(stream);
}

absl::StatusOr<CudaApi::Event> TimedCuda::CreateEvent() {
  const Timer timer(totals_[kCreateEvent]);
  return cuda_.CreateEvent();
}

void TimedCuda::DestroyEvent(Event event) {
  const Timer timer(totals_[kDestroyEvent]);
  cuda_.DestroyEvent(event);
}

absl::Status TimedCuda::Record(Event event, Stream stream) {
  const Timer timer(totals_[kRecord]);
  return cuda_.Record(event, stream);
}

absl::Status TimedCuda::Wait(Stream stream, Event event) {
  const Timer timer(totals_[kWait]);
  return cuda_.Wait(stream, event);
}

absl::Status TimedCuda::WaitOnHost(Event event) {
  const Timer timer(totals_[kWaitOnHost]);
  return cuda_.WaitOnHost(event);
}

absl::StatusOr<float> TimedCuda::Elapsed(Event from, Event to) {
  const Timer timer(totals_[kElapsed]);
  return cuda_.Elapsed(from, to);
}

absl::Status TimedCuda::Preload(const Launch& launch) {
  const Timer timer(totals_[kPreload]);
  return cuda_.Preload(launch);
}

absl::StatusOr<int> TimedCuda::MaxActiveClusters(const Launch& launch) {
  const Timer timer(totals_[kMaxActiveClusters]);
  return cuda_.MaxActiveClusters(launch);
}

absl::Status TimedCuda::LaunchKernel(const Launch& launch, Stream stream) {
  const Timer timer(totals_[kLaunchKernel]);
  return cuda_.LaunchKernel(launch, stream);
}

absl::StatusOr<CudaApi::Graph> TimedCuda::CreateGraph() {
  const Timer timer(totals_[kCreateGraph]);
  return cuda_.CreateGraph();
}

void TimedCuda::DestroyGraph(Graph graph) {
  const Timer timer(totals_[kDestroyGraph]);
  cuda_.DestroyGraph(graph);
}

absl::StatusOr<CudaApi::Node> TimedCuda::AddKernel(Graph graph,
                                                   absl::Span<const Edge> edges,
                                                   const Launch& launch) {
  const Timer timer(totals_[kAddKernel]);
  return cuda_.AddKernel(graph, edges, launch);
}

absl::StatusOr<CudaApi::Node> TimedCuda::AddChildGraph(
    Graph graph, absl::Span<const Edge> edges, Graph child) {
  const Timer timer(totals_[kAddChildGraph]);
  return cuda_.AddChildGraph(graph, edges, child);
}

absl::Status TimedCuda::BeginCapture(Stream stream) {
  const Timer timer(totals_[kBeginCapture]);
  return cuda_.BeginCapture(stream);
}

absl::StatusOr<CudaApi::Graph> TimedCuda::EndCapture(Stream stream) {
  const Timer timer(totals_[kEndCapture]);
  return cuda_.EndCapture(stream);
}

absl::StatusOr<std::vector<CudaApi::NodeInfo>> TimedCuda::Nodes(Graph graph) {
  const Timer timer(totals_[kNodes]);
  return cuda_.Nodes(graph);
}

absl::StatusOr<CudaApi::GraphExec> TimedCuda::Instantiate(Graph graph,
                                                          Stream stream) {
  const Timer timer(totals_[kInstantiate]);
  return cuda_.Instantiate(graph, stream);
}

void TimedCuda::DestroyGraphExec(GraphExec exec) {
  const Timer timer(totals_[kDestroyGraphExec]);
  cuda_.DestroyGraphExec(exec);
}

absl::Status TimedCuda::LaunchGraph(GraphExec exec, Stream stream) {
  const Timer timer(totals_[kLaunchGraph]);
  return cuda_.LaunchGraph(exec, stream);
}

absl::Status TimedCuda::WriteDot(Graph graph, const std::string& path) {
  const Timer timer(totals_[kWriteDot]);
  return cuda_.WriteDot(graph, path);
}

absl::StatusOr<std::string> TimedCuda::MatMulLibrary() {
  const Timer timer(totals_[kMatMulLibrary]);
  return cuda_.MatMulLibrary();
}

absl::StatusOr<CudaApi::MatMulPlan> TimedCuda::PlanMatMul(
    const CudaMatMul& matmul, void* workspace, int64_t workspace_bytes,
    Stream stream) {
  const Timer timer(totals_[kPlanMatMul]);
  return cuda_.PlanMatMul(matmul, workspace, workspace_bytes, stream);
}

void TimedCuda::DestroyMatMulPlan(MatMulPlan plan) {
  const Timer timer(totals_[kDestroyMatMulPlan]);
  cuda_.DestroyMatMulPlan(plan);
}

std::string TimedCuda::Describe(MatMulPlan plan) {
  return cuda_.Describe(plan);
}

absl::Status TimedCuda::RunMatMul(MatMulPlan plan,
                                  const CudaMatMulOperands& operands,
                                  Stream stream) {
  const Timer timer(totals_[kRunMatMul]);
  return cuda_.RunMatMul(plan, operands, stream);
}

}  // namespace onestep
