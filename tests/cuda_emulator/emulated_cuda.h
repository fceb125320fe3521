// SPDX-License-Identifier: Apache-2.0
// CUDA for tests, without a GPU: kernels run in the emulator (emulator.h), all
// calls are recorded, and any of them can be made to fail. It is as strict as
// CUDA allows itself to be, and in the marked places stricter (*).
//
// Memory is host memory: what kernels are given are ordinary pointers, of
// exactly the bytes asked for, so that AddressSanitizer finds overruns; filled
// with 0xff bytes, which are NaN as floats. Freeing what is not allocated, or
// what queued work uses, is an error (*: cudaFree waits); which addresses a
// kernel uses is guessed from its arguments.
//
// Streams are asynchronous, as late as can be: queued work runs only inside
// Synchronize, Done, a copy to pageable memory, or a Destroy. It runs in stream
// order, and between streams as chance (the seed) has it: all of the others'
// first, only what is waited for, or mixed. Copies read and write pinned memory
// when they run; a copy from pageable memory reads it at the call, one to
// pageable memory waits. Done runs some of the work. Destroying a stream, an
// event or an exec that queued work needs is an error (*: CUDA lets it finish
// first, as is then done here).
//
// Graphs run in any order that their edges allow, one node at a time, mixed
// with other streams. A programmatic edge orders as much as any other, so that
// a kernel that waits too late is not found here; both must be kernels, the
// later one with Launch.waits (*).
//
// Capture gives a chain of nodes in stream order; a matmul becomes one node of
// kind "kernel". While any stream captures, these fail with 900 and invalidate
// the capture, so that what is captured after that, and EndCapture, answer 901:
// Synchronize, Done, Malloc, Free, MallocHost, FreeHost, PlanMatMul, a launch
// or Preload of a kernel not yet loaded, Instantiate on the capturing stream,
// and (*) Record, Wait, Elapsed and copies with pageable memory.
//
// PlanMatMul waits for its stream, and like RunMatMul overwrites the workspace.
//
// Kernels: the first launch of one that Preload has not seen is recorded as
// "LazyLoad". Without Preload for as much, a launch may have 48 KiB of shared
// memory and clusters of 8.
//
// An error of running work (a kernel that traps, memory that is gone) comes out
// of the call that runs it and, as in CUDA, of every later one; queued work is
// dropped, and only the calls that free and destroy go on.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_CUDA_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_CUDA_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/cuda_api.h"
#include "tests/cuda_emulator/call_log.h"
#include "tests/cuda_emulator/emulated_graph.h"

namespace onestep {

struct EmulatedCudaOptions {
  CudaDevice device = {.name = "Emulated H200",
                       .multiprocessors = 132,
                       .compute_major = 9,
                       .compute_minor = 0,
                       .memory_bytes = int64_t{139} << 30,
                       .max_shared_bytes = 232448,
                       .runtime_version = "13.0",
                       .driver_version = "13.0"};
  uint64_t seed = 1;
  // Null: multiprocessors / cluster.
  std::function<int(const Launch&)> max_active_clusters = {};
  // Whether Done answers no and runs nothing; null: now and then.
  std::function<bool()> busy = {};
  // The matmuls that PlanMatMul answers Unimplemented for; null: none.
  std::function<bool(const CudaMatMul&)> no_algorithm = {};
};

class EmulatedCuda final : public CudaApi {
 public:
  explicit EmulatedCuda(EmulatedCudaOptions options = {});

  CallLog& log() { return log_; }

  // Makes the nth call from now on (from 1) of this function of CudaApi fail;
  // by a code as CUDA does: 700 and 719 stay, 900 to 906 invalidate captures.
  // "RunKernel" is the nth kernel or matmul that runs, in a graph too.
  void FailAt(std::string_view call, int nth, absl::Status status);
  void FailAt(std::string_view call, int nth, int cuda_error);

  // Misuse that no status can report, one text each.
  const std::vector<std::string>& errors() const { return errors_; }
  // "2 device allocations (512 bytes), 1 stream": what was not freed; or "".
  std::string LiveObjects() const;

  std::string RuntimeVersion() override;
  absl::StatusOr<CudaDevice> Device() override;
  absl::StatusOr<std::vector<CudaDevice>> Devices() override;
  absl::StatusOr<int64_t> FreeMemory() override;

  // *: wants bytes > 0.
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
  // A microsecond for each piece of work that ran between the two.
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
  // Of the calls of CudaApi, by its names; they take no time.
  absl::StatusOr<std::unique_ptr<CudaCallCounter>> CountCalls() override;

 private:
  struct Allocation {
    std::unique_ptr<unsigned char, void (*)(void*)> data;
    int64_t bytes = 0;
    bool pinned = false;
  };
  struct EventState {
    int64_t recorded = 0, done = 0;  // Records that were queued, that ran
    int64_t stream = 0;              // of the last
    int64_t time = 0;                // of the last that ran
  };
  struct ExecState {
    std::shared_ptr<const EmulatedGraph> graph;
    int64_t launched = 0, done = 0;
  };
  // In a stream's queue: work, or a graph's launch.
  struct Task {
    EmulatedWork work = {};
    std::function<bool()> ready = {};  // null: always
    int64_t needs = 0;                 // handle of an event or an exec
    std::shared_ptr<ExecState> exec = {};
    std::shared_ptr<EmulatedGraphRun> run = {};
  };
  struct StreamState {
    std::deque<Task> queue;
    std::shared_ptr<EmulatedGraph> capture;  // null: it does not capture
    bool capture_invalid = false;
  };
  struct Plan {
    CudaMatMul matmul;
    void* workspace = nullptr;
    int64_t workspace_bytes = 0;
  };
  struct Loaded {
    uint32_t shared_bytes = 48 * 1024, cluster = 8;
  };
  struct Failure {
    std::string call;
    int left = 0;  // calls until it fails, that one counted
    absl::Status status;
    int cuda_error = 0;
  };

  static uintptr_t Address(const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer);
  }
  template <typename Handle>
  static int64_t Number(Handle handle) {
    return reinterpret_cast<int64_t>(handle);
  }

  // Every call begins here: records it, and answers why it fails.
  absl::Status Begin(CudaCall call, bool breaks_capture = false);
  absl::Status TakeFailure(std::string_view call);
  absl::Status Fail(std::string_view call, int code, std::string_view detail);
  bool Capturing() const;
  void InvalidateCaptures();
  // As Begin, for a call that has no status: true if it may go on.
  bool BeginDestroy(CudaCall call, bool breaks_capture = false);

  int64_t UnusedMemory() const;
  absl::StatusOr<void*> Allocate(const char* call, int64_t bytes, bool pinned);
  void Release(const char* call, void* memory, bool pinned);
  // The last allocation that has any of these bytes, or null.
  const Allocation* Overlapping(const void* begin, int64_t bytes) const;
  static bool Inside(const Allocation* allocation, const void* begin,
                     int64_t bytes);
  bool InsideDevice(const void* begin, int64_t bytes) const;
  absl::Status CheckRanges(const char* call, const void* device,
                           const void* host, int64_t bytes) const;

  absl::StatusOr<StreamState*> Find(const char* call, Stream stream);
  absl::Status Enqueue(const char* call, Stream stream, Task task);
  static bool Ready(const StreamState& stream);
  bool Needed(int64_t handle) const;
  absl::Status RunWork(const EmulatedWork& work);
  // Runs one piece of work, of the stream that is waited for or of another.
  absl::Status RunOne(StreamState& towards, int mood);
  // The same; an error stays.
  absl::Status RunTowards(const char* call, StreamState& towards, int mood);
  absl::Status Drain(const char* call, StreamState& stream);
  void DrainAll();

  absl::Status CheckLaunch(const char* call, const Launch& launch) const;
  // That it is loaded, or may be loaded now, and for this much.
  absl::Status CheckLoaded(const char* call, const Launch& launch);
  EmulatedWork KernelWork(const Launch& launch);
  absl::StatusOr<EmulatedGraph*> Find(const char* call, Graph graph) const;
  absl::StatusOr<Node> AddNode(const char* call, Graph graph,
                               absl::Span<const Edge> edges, EmulatedNode node);
  absl::Status CheckOperands(const CudaMatMul& matmul,
                             const CudaMatMulOperands& operands) const;

  EmulatedCudaOptions options_;
  EmulatedRandom random_;
  CallLog log_;
  std::vector<Failure> failures_;
  std::vector<std::string> errors_;
  int sticky_ = 0;  // CUDA's error that every call answers with
  std::string sticky_detail_;
  int64_t time_ = 0;  // pieces of work that ran

  // Handles are numbers that are not used again.
  int64_t next_handle_ = 1;
  std::map<uintptr_t, Allocation> memory_;
  std::map<int64_t, StreamState> streams_;
  std::map<int64_t, std::shared_ptr<EventState>> events_;
  std::map<int64_t, std::shared_ptr<EmulatedGraph>> graphs_;
  std::map<int64_t, std::shared_ptr<ExecState>> execs_;
  std::map<int64_t, Plan> plans_;
  std::map<const void*, Loaded> loaded_;
};

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_CUDA_H_
