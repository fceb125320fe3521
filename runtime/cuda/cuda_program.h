// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_PROGRAM_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/executable.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_bindings.h"
#include "runtime/cuda/cuda_graph.h"
#include "runtime/cuda/cuda_handle.h"
#include "runtime/cuda/cuda_matmuls.h"

namespace onestep {

// How the steps of a program come to the device.
enum class CudaLaunch : uint8_t {
  kEach,        // every node a launch of its own, step by step
  kGraph,       // one replay of a CUDA graph for steps_per_launch steps
  kPersistent,  // one kernel for many steps
};

// What the host and a persistent kernel tell each other, in pinned memory.
struct CudaSignals {
  // From the host: nonzero stops all blocks of a model after the same step.
  uint32_t stop = 0;
  uint32_t progress = 0;  // from the device: steps completed by this launch
};

// What a lowering makes of a graph.
struct CudaSpec {
  std::vector<CudaSlot> slots;
  std::vector<CudaTable> tables;
  int64_t arena_bytes = 0;
  int64_t workspace_bytes = 0;                   // zeroed once
  std::vector<std::pair<int, float>> constants;  // slots filled once
  // One per node, in the order of `nodes`; of a persistent program one in all.
  std::vector<StepInfo> steps;
  CudaLaunch launch = CudaLaunch::kEach;
  int64_t steps_per_launch = 1;
  // The nodes of the next `n` steps, which also advance the device's step count
  // by n. Not set for a persistent program.
  std::function<std::vector<CudaNode>(const CudaBindings&, int64_t n)> nodes;
  // The nodes that run when the step count restarts at 0; may not be set.
  std::function<std::vector<CudaNode>(const CudaBindings&)> begin;
  // The launch of steps [first, first + n). Set for a persistent program only.
  std::function<Launch(const CudaBindings&, int64_t first, int64_t n,
                       CudaSignals*)>
      persistent;
  // Whether the persistent kernel polls CudaSignals::stop. If it does not, a
  // launch has as many steps as are expected to fill a slice (kSliceSeconds).
  bool stops = true;
  // Sets n floats to a value: fills the slots of `constants`.
  std::function<Launch(float* to, float value, int64_t n)> fill;
  Launch empty;  // of a kernel that does nothing
  std::string lowering;
  std::string plan;
};

// The stream that a program runs on, and the library's matmuls.
struct CudaSession {
  CudaSession(CudaApi& cuda, CudaDevice device, CudaStream stream)
      : cuda(cuda),
        device(std::move(device)),
        stream(std::move(stream)),
        matmuls(cuda, this->stream.get()) {}
  // Unavailable: no device.
  static absl::StatusOr<std::unique_ptr<CudaSession>> Create(CudaApi& cuda);

  CudaApi& cuda;
  CudaDevice device;
  CudaStream stream;
  CudaMatMuls matmuls;
};

// A compiled graph on a GPU. Memory, modules and graphs are ready before the
// first step; a run of steps allocates, copies and waits for nothing between
// its first launch and its last, except for the rows of tables that do not fit
// on the device. After a call has failed, every later call returns that error.
class CudaProgram : public Executable {
 public:
  ~CudaProgram() override;

  // The host stops a persistent kernel after so long and launches it again,
  // which bounds how long a Ctrl-C waits.
  static constexpr double kSliceSeconds = 0.05;

  // `table_limit_bytes`: see CudaBindings; 0: what the device has free, less a
  // tenth.
  static absl::StatusOr<std::unique_ptr<CudaProgram>> Create(
      std::unique_ptr<CudaSession> session, CudaSpec spec,
      int64_t table_limit_bytes);
  // A program without a device, for its plan: Bind and Run return `why`.
  static std::unique_ptr<CudaProgram> Planned(CudaSpec spec, absl::Status why);

  absl::Status Bind(absl::string_view name, void* data,
                    int64_t stride_bytes = 0, int64_t steps = 0) override;
  absl::Status Run(int64_t n) override;
  // Launches every node by itself, those of a graph too. The time of a node is
  // the device's, from an event before it to an event after it on a stream that
  // the host lets run empty. It includes the latency of a launch to an idle
  // device, which the trace's empty_ns measures with an empty kernel.
  absl::Status RunTraced(int64_t n, StepTrace& trace) override;
  void ParamsChanged() override { bindings_->ParamsChanged(); }
  absl::Status ParamsToHost() override;
  const std::vector<StepInfo>& steps() const override { return spec_.steps; }
  // steps(), and after RunTraced what else was a call: the steps' boundary.
  const std::vector<StepInfo>& WorkerSteps(int /*worker*/) const override {
    return worker_steps_.empty() ? spec_.steps : worker_steps_;
  }
  std::string lowering() const override { return spec_.lowering; }
  bool models_innermost() const override { return false; }
  const std::string& plan() const override { return spec_.plan; }
  int64_t arena_bytes() const override { return spec_.arena_bytes; }
  int64_t dispatches() const override;
  std::optional<DeviceTraffic> traffic() const override;

  // The nodes of a step; in a planned program with made-up addresses.
  std::vector<CudaNode> Nodes() const;
  bool has_device() const { return session_ != nullptr; }
  bool has_graph() const { return spec_.launch == CudaLaunch::kGraph; }
  // CUDA's own drawing of the graph. REQUIRES: has_device(), has_graph().
  absl::Status WriteDot(const std::string& path);

 private:
  CudaProgram() = default;
  absl::Status Fail(const absl::Status& status);
  absl::Status RunSteps(
      int64_t n,
      absl::FunctionRef<absl::Status(int64_t first, int64_t count)> launch);
  absl::Status Prepare(int64_t n, bool restarted);
  absl::Status LaunchSteps(int64_t first, int64_t n);
  absl::Status Replay(int64_t steps, int64_t times);
  absl::Status RunPersistent(int64_t first, int64_t n);
  absl::Status TraceSteps(int64_t n, int64_t count, StepTrace::Worker& trace);
  absl::StatusOr<int64_t> NodeNs(const CudaNode& node);
  absl::Status TimeEmptyNode();
  absl::Status LaunchAll(const std::vector<CudaNode>& nodes);
  absl::Status Preload(const std::vector<CudaNode>& nodes);
  std::set<int64_t> ReplaySizes(int64_t n) const;
  absl::StatusOr<CudaGraph> Build(int64_t steps);

  CudaSpec spec_;
  absl::Status broken_;
  // Destroyed last to first: graphs, then memory, then the stream.
  std::unique_ptr<CudaSession> session_;
  std::unique_ptr<CudaBindings> bindings_;
  CudaPinnedMemory signals_memory_;
  std::vector<CudaNode> each_;  // of one step, when each is launched
  std::map<int64_t, CudaGraphExec> replays_;  // by steps
  // Of traced runs; empty before the first.
  CudaEvent before_node_, after_node_;
  int64_t empty_ns_ = 0;
  std::vector<StepInfo> worker_steps_;
  int64_t layout_ = -1;  // of the bindings that these were made for
  int64_t steps_run_ = 0, launches_ = 0;
  int64_t slice_steps_ = 64;  // of a persistent kernel that does not stop
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_PROGRAM_H_
