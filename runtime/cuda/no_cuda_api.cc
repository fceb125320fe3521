// SPDX-License-Identifier: Apache-2.0
// Linked instead of cuda_api.cc when CUDA was not found: every call says so.
#include "runtime/cuda/cuda_api.h"

namespace onestep {
namespace {

absl::Status None() {
  return absl::UnavailableError("device gpu: built without CUDA");
}

class NoCuda final : public CudaApi {
 public:
  absl::StatusOr<CudaDevice> Device() override { return None(); }
  absl::StatusOr<int64_t> FreeMemory() override { return None(); }

  absl::StatusOr<void*> Malloc(int64_t) override { return None(); }
  void Free(void*) override {}
  absl::StatusOr<void*> MallocHost(int64_t) override { return None(); }
  void FreeHost(void*) override {}
  absl::Status CopyToDevice(void*, const void*, int64_t, Stream) override {
    return None();
  }
  absl::Status CopyToHost(void*, const void*, int64_t, Stream) override {
    return None();
  }
  absl::Status Memset(void*, int, int64_t, Stream) override { return None(); }

  absl::StatusOr<Stream> CreateStream() override { return None(); }
  void DestroyStream(Stream) override {}
  absl::Status Synchronize(Stream) override { return None(); }
  absl::StatusOr<bool> Done(Stream) override { return None(); }
  absl::StatusOr<Event> CreateEvent() override { return None(); }
  void DestroyEvent(Event) override {}
  absl::Status Record(Event, Stream) override { return None(); }
  absl::Status Wait(Stream, Event) override { return None(); }
  absl::Status WaitOnHost(Event) override { return None(); }
  absl::StatusOr<float> Elapsed(Event, Event) override { return None(); }

  absl::Status Preload(const Launch&) override { return None(); }
  absl::StatusOr<int> MaxActiveClusters(const Launch&) override {
    return None();
  }
  absl::Status LaunchKernel(const Launch&, Stream) override { return None(); }

  absl::StatusOr<Graph> CreateGraph() override { return None(); }
  void DestroyGraph(Graph) override {}
  absl::StatusOr<Node> AddKernel(Graph, absl::Span<const Edge>,
                                 const Launch&) override {
    return None();
  }
  absl::StatusOr<Node> AddChildGraph(Graph, absl::Span<const Edge>,
                                     Graph) override {
    return None();
  }
  absl::Status BeginCapture(Stream) override { return None(); }
  absl::StatusOr<Graph> EndCapture(Stream) override { return None(); }
  absl::StatusOr<std::vector<NodeInfo>> Nodes(Graph) override { return None(); }
  absl::StatusOr<GraphExec> Instantiate(Graph, Stream) override {
    return None();
  }
  void DestroyGraphExec(GraphExec) override {}
  absl::Status LaunchGraph(GraphExec, Stream) override { return None(); }
  absl::Status WriteDot(Graph, const std::string&) override { return None(); }

  absl::StatusOr<std::string> MatMulLibrary() override { return None(); }
  absl::StatusOr<MatMulPlan> PlanMatMul(const CudaMatMul&, void*, int64_t,
                                        Stream) override {
    return None();
  }
  void DestroyMatMulPlan(MatMulPlan) override {}
  std::string Describe(MatMulPlan) override { return ""; }
  absl::Status RunMatMul(MatMulPlan, const CudaMatMulOperands&,
                         Stream) override {
    return None();
  }
  absl::StatusOr<std::unique_ptr<CudaCallCounter>> CountCalls() override {
    return None();
  }
};

}  // namespace

CudaApi& RealCuda() {
  static NoCuda* const cuda = new NoCuda;
  return *cuda;
}

}  // namespace onestep
