// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_TIMED_CUDA_H_
#define ONESTEP_RUNTIME_CUDA_TIMED_CUDA_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_call_stats.h"

namespace onestep {

// The functions of CudaApi that call CUDA: all but Describe.
#define ONESTEP_CUDA_CALLS(F) \
  F(AddChildGraph)            \
  F(AddKernel)                \
  F(BeginCapture)             \
  F(CopyToDevice)             \
  F(CopyToHost)               \
  F(CreateEvent)              \
  F(CreateGraph)              \
  F(CreateStream)             \
  F(DestroyEvent)             \
  F(DestroyGraph)             \
  F(DestroyGraphExec)         \
  F(DestroyMatMulPlan)        \
  F(DestroyStream)            \
  F(Device)                   \
  F(Done)                     \
  F(Elapsed)                  \
  F(EndCapture)               \
  F(Free)                     \
  F(FreeHost)                 \
  F(FreeMemory)               \
  F(Instantiate)              \
  F(LaunchGraph)              \
  F(LaunchKernel)             \
  F(Malloc)                   \
  F(MallocHost)               \
  F(MatMulLibrary)            \
  F(MaxActiveClusters)        \
  F(Memset)                   \
  F(Nodes)                    \
  F(PlanMatMul)               \
  F(Preload)                  \
  F(Record)                   \
  F(RunMatMul)                \
  F(Synchronize)              \
  F(Wait)                     \
  F(WaitOnHost)               \
  F(WriteDot)

// Passes every call on to another CudaApi, which must outlive it, and adds up
// how many there were and how long they took. What the other calls by itself
// (the launches by which PlanMatMul chooses) is in the time of the one call.
class TimedCuda final : public CudaApi {
 public:
  explicit TimedCuda(CudaApi& cuda);

  // Of the calls since the start or Reset; the most time first.
  std::vector<CudaCallStats> Stats() const;
  void Reset() { totals_ = {}; }
  // What timing costs a call, as measured at the start.
  double cost_us() const { return cost_us_; }

  absl::StatusOr<CudaDevice> Device() override;
  absl::StatusOr<int64_t> FreeMemory() override;

  absl::StatusOr<void*> Malloc(int64_t bytes) override;
  void Free(void* device) override;
  absl::StatusOr<void*> MallocHost(int64_t bytes) override;
  void FreeHost(void* host) override;
  absl::Status CopyToDevice(void* device, const void* host, int64_t bytes,
                            Stream stream) override;
  absl::Status CopyToHost(void* host, const void* device, int64_t bytes,
                          Stream stream) override;
  absl::Status Memset(void* device, int value, int64_t bytes,
                      Stream stream) override;

  absl::StatusOr<Stream> CreateStream() override;
  void DestroyStream(Stream stream) override;
  absl::Status Synchronize(Stream stream) override;
  absl::StatusOr<bool> Done(Stream stream) override;
  absl::StatusOr<Event> CreateEvent() override;
  void DestroyEvent(Event event) override;
  absl::Status Record(Event event, Stream stream) override;
  absl::Status Wait(Stream stream, Event event) override;
  absl::Status WaitOnHost(Event event) override;
  absl::StatusOr<float> Elapsed(Event from, Event to) override;

  absl::Status Preload(const Launch& launch) override;
  absl::StatusOr<int> MaxActiveClusters(const Launch& launch) override;
  absl::Status LaunchKernel(const Launch& launch, Stream stream) override;

  absl::StatusOr<Graph> CreateGraph() override;
  void DestroyGraph(Graph graph) override;
  absl::StatusOr<Node> AddKernel(Graph graph, absl::Span<const Edge> edges,
                                 const Launch& launch) override;
  absl::StatusOr<Node> AddChildGraph(Graph graph, absl::Span<const Edge> edges,
                                     Graph child) override;
  absl::Status BeginCapture(Stream stream) override;
  absl::StatusOr<Graph> EndCapture(Stream stream) override;
  absl::StatusOr<std::vector<NodeInfo>> Nodes(Graph graph) override;
  absl::StatusOr<GraphExec> Instantiate(Graph graph, Stream stream) override;
  void DestroyGraphExec(GraphExec exec) override;
  absl::Status LaunchGraph(GraphExec exec, Stream stream) override;
  absl::Status WriteDot(Graph graph, const std::string& path) override;

  absl::StatusOr<std::string> MatMulLibrary() override;
  absl::StatusOr<MatMulPlan> PlanMatMul(const CudaMatMul& matmul,
                                        void* workspace,
                                        int64_t workspace_bytes,
                                        Stream stream) override;
  void DestroyMatMulPlan(MatMulPlan plan) override;
  std::string Describe(MatMulPlan plan) override;
  absl::Status RunMatMul(MatMulPlan plan, const CudaMatMulOperands& operands,
                         Stream stream) override;

 private:
  enum Call {
#define ONESTEP_CUDA_CALL(name) k##name,
    ONESTEP_CUDA_CALLS(ONESTEP_CUDA_CALL)
#undef ONESTEP_CUDA_CALL
        kNumCalls
  };
  struct Total {
    int64_t calls = 0, ns = 0;
  };
  // Adds its own life to the total.
  class Timer;

  CudaApi& cuda_;
  std::array<Total, kNumCalls> totals_ = {};
  double cost_us_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_TIMED_CUDA_H_
