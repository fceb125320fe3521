// SPDX-License-Identifier: Apache-2.0
// The few CUDA calls that onestep makes, behind one interface: CUDA itself
// (cuda_api.cc), and in the tests an emulator that runs the kernels on the CPU
// and records the calls.
//
// Every call returns a status that names the call and CUDA's reason:
// Unavailable: no driver or device; ResourceExhausted: memory, with the bytes
// asked for; Internal: anything else. Streams are non-blocking, capture is
// thread-local, nothing uses the legacy stream. Not thread-safe.
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_API_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_API_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/launch.h"
#include "runtime/cuda/cuda_call_stats.h"

namespace onestep {

// How fp32 matrices are multiplied.
enum class MathMode : uint8_t { kFp32, kTf32, kBf16 };
const char* ToString(MathMode math);

struct CudaDevice {
  std::string name;  // "NVIDIA H200"
  int multiprocessors = 0;
  int compute_major = 0, compute_minor = 0;  // 9, 0
  int64_t memory_bytes = 0;
  int max_shared_bytes = 0;                     // of a block, with opt-in
  std::string runtime_version, driver_version;  // "13.0"
  // "NVIDIA H200, 132 SMs, sm_90, 139 GiB"
  std::string ToString() const;
};

// A library's matmul, row-major: y[m,n] = op(a) op(b), with an epilogue:
//   + bias[n]; relu; `mask_out`: writes which of y's elements are positive
//   (1 bit each, leading dimension MaskColumns(n));
//   mask_in: times such a mask; accumulate: added to what y holds;
//   column_sums: of the masked y when mask_in; else of b, when trans_a (its
//   rows are k): column_sums[n] = sum over k of b[k,n].
// With `models`, a batch of so many products: the models' operands lie one
// after the other, except an `a` that all models share (shared_a).
struct CudaMatMul {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  bool bias = false, relu = false, mask_out = false, mask_in = false;
  bool accumulate = false, column_sums = false;
  MathMode math = MathMode::kFp32;
  int64_t models = 0;
  bool shared_a = false;

  int64_t count() const { return models > 0 ? models : 1; }
  // "matmul 32x128x784 fp32 relu_aux_bias", "16x matmul .."
  std::string ToString() const;
  friend bool operator==(const CudaMatMul&, const CudaMatMul&) = default;
};
// Bits per row of a relu mask: a multiple of 128.
constexpr int64_t MaskColumns(int64_t n) { return (n + 127) / 128 * 128; }

struct CudaMatMulOperands {
  const float *a = nullptr, *b = nullptr;
  float* y = nullptr;
  const float* bias = nullptr;
  void* mask = nullptr;
  float* column_sums = nullptr;
};

class CudaApi {
 public:
  // Opaque handles, owned by who created them; see cuda_handle.h.
  using Stream = struct CudaStreamTag*;
  using Event = struct CudaEventTag*;
  using Graph = struct CudaGraphTag*;
  using Node = struct CudaNodeTag*;  // owned by its graph
  using GraphExec = struct CudaGraphExecTag*;
  using MatMulPlan = struct CudaMatMulPlanTag*;

  struct Edge {
    Node from = nullptr;
    // REQUIRES: both are kernels. An ordinary edge below sm_90, which has no
    // programmatic ones.
    bool programmatic = false;
  };
  struct NodeInfo {
    std::string kind;  // "kernel", "child graph", "memcpy", ...
    std::string name;  // of a kernel
  };

  virtual ~CudaApi() = default;

  // "13.0": of the CUDA runtime that was linked; needs no device.
  virtual std::string RuntimeVersion() = 0;
  // Device 0, which all other calls use. Unavailable with the reason.
  virtual absl::StatusOr<CudaDevice> Device() = 0;
  // All devices, at least one. Unavailable with the reason.
  virtual absl::StatusOr<std::vector<CudaDevice>> Devices() = 0;
  // Bytes of device memory that can be allocated now.
  virtual absl::StatusOr<int64_t> FreeMemory() = 0;

  // ---- memory: device, and pinned host memory that kernels see too ----
  virtual absl::StatusOr<void*> Malloc(int64_t bytes) = 0;
  virtual void Free(void* device) = 0;
  virtual absl::StatusOr<void*> MallocHost(int64_t bytes) = 0;
  virtual void FreeHost(void* host) = 0;
  // The host memory must be pinned, or the call copies it first.
  virtual absl::Status CopyToDevice(void* device, const void* host,
                                    int64_t bytes, Stream stream) = 0;
  virtual absl::Status CopyToHost(void* host, const void* device, int64_t bytes,
                                  Stream stream) = 0;
  virtual absl::Status Memset(void* device, int value, int64_t bytes,
                              Stream stream) = 0;

  // ---- streams and events ----
  virtual absl::StatusOr<Stream> CreateStream() = 0;
  virtual void DestroyStream(Stream stream) = 0;
  virtual absl::Status Synchronize(Stream stream) = 0;
  // Whether all work of the stream is done.
  virtual absl::StatusOr<bool> Done(Stream stream) = 0;
  virtual absl::StatusOr<Event> CreateEvent() = 0;
  virtual void DestroyEvent(Event event) = 0;
  virtual absl::Status Record(Event event, Stream stream) = 0;
  virtual absl::Status Wait(Stream stream, Event event) = 0;
  // Returns when the work before the event is done.
  virtual absl::Status WaitOnHost(Event event) = 0;
  // Milliseconds between two recorded events that are done.
  virtual absl::StatusOr<float> Elapsed(Event from, Event to) = 0;

  // ---- kernels ----
  // Loads the kernel's module and allows its shared memory and cluster size.
  // Comes before the first launch or capture of the kernel.
  virtual absl::Status Preload(const Launch& launch) = 0;
  // Clusters of this launch that can be resident at once.
  virtual absl::StatusOr<int> MaxActiveClusters(const Launch& launch) = 0;
  virtual absl::Status LaunchKernel(const Launch& launch, Stream stream) = 0;

  // ---- graphs ----
  virtual absl::StatusOr<Graph> CreateGraph() = 0;
  virtual void DestroyGraph(Graph graph) = 0;
  virtual absl::StatusOr<Node> AddKernel(Graph graph,
                                         absl::Span<const Edge> edges,
                                         const Launch& launch) = 0;
  // The child is copied.
  virtual absl::StatusOr<Node> AddChildGraph(Graph graph,
                                             absl::Span<const Edge> edges,
                                             Graph child) = 0;
  virtual absl::Status BeginCapture(Stream stream) = 0;
  virtual absl::StatusOr<Graph> EndCapture(Stream stream) = 0;
  virtual absl::StatusOr<std::vector<NodeInfo>> Nodes(Graph graph) = 0;
  // Also uploads it.
  virtual absl::StatusOr<GraphExec> Instantiate(Graph graph, Stream stream) = 0;
  virtual void DestroyGraphExec(GraphExec exec) = 0;
  virtual absl::Status LaunchGraph(GraphExec exec, Stream stream) = 0;
  virtual absl::Status WriteDot(Graph graph, const std::string& path) = 0;

  // ---- matmuls of cuBLASLt ----
  // "cublasLt 13.1.0", or Unavailable: why it cannot be used.
  virtual absl::StatusOr<std::string> MatMulLibrary() = 0;
  // Times the library's candidates on operands of its own and keeps the
  // fastest. `workspace` (256-byte aligned, device) is used by every run.
  // Unimplemented: the library has no algorithm for it.
  virtual absl::StatusOr<MatMulPlan> PlanMatMul(const CudaMatMul& matmul,
                                                void* workspace,
                                                int64_t workspace_bytes,
                                                Stream stream) = 0;
  virtual void DestroyMatMulPlan(MatMulPlan plan) = 0;
  // "algorithm 21 tile 64x64 split-k 8, 4.1 us, the fastest of 17"
  virtual std::string Describe(MatMulPlan plan) = 0;
  virtual absl::Status RunMatMul(MatMulPlan plan,
                                 const CudaMatMulOperands& operands,
                                 Stream stream) = 0;

  // ---- accounting ----
  // Counts the calls of CUDA, whoever makes them, for a profile. Unavailable,
  // with the reason, when nothing here can count them.
  virtual absl::StatusOr<std::unique_ptr<CudaCallCounter>> CountCalls() = 0;
};

// The CUDA that this program was built with; lives as long as the program.
// Unavailable: it was built without CUDA. Whether there is a device, Device()
// says.
absl::StatusOr<CudaApi*> FindCuda();

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_API_H_
