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
  uint32_t stop = 0;      // host to device: end after the step in hand
  uint32_t progress = 0;  // device to host: steps done of this launch
};

// What a lowering makes of a graph.
struct CudaSpec {
  std::vector<CudaSlot> slots;
  std::vector<CudaTable> tables;
  int64_t arena_bytes = 0;
  int64_t workspace_bytes = 0;                   // zeroed once
  std::vector<std::pair<int, float>> constants;  // slots filled once
  std::vector<StepInfo> steps;  // but of a persistent program, one per node
  CudaLaunch launch = CudaLaunch::kEach;
  int64_t steps_per_launch = 1;
  // The nodes of `n` steps on from the step that the device counts, which they
  // advance by n. Not of a persistent program.
  std::function<std::vector<CudaNode>(const CudaBindings&, int64_t n)> nodes;
  // What runs when the step count begins again; may be empty.
  std::function<std::vector<CudaNode>(const CudaBindings&)> begin;
  // Steps [first, first + n); of a persistent program.
  std::function<Launch(const CudaBindings&, int64_t first, int64_t n,
                       CudaSignals*)>
      persistent;
  // Whether it heeds CudaSignals::stop. Else a launch is of as many steps as
  // are expected to fill a slice.
  bool stops = true;
  // Launches that fill the constants' slots.
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

// A compiled graph on a GPU. All is allocated, loaded and captured before the
// first step; a run of steps allocates, copies and waits for nothing between
// its first launch and its last, but for the rows of tables that the device
// cannot hold. A failed call ends the program: every later one gives its error.
class CudaProgram : public Executable {
 public:
  ~CudaProgram() override;

  // Slices of a persistent kernel, and so how long a Ctrl-C may wait.
  static constexpr double kSliceSeconds = 0.05;

  // `table_limit_bytes`: see CudaBindings; 0: what the device has free, less a
  // tenth.
  static absl::StatusOr<std::unique_ptr<CudaProgram>> Create(
      std::unique_ptr<CudaSession> session, CudaSpec spec,
      int64_t table_limit_bytes);
  // Without a device: everything can be asked, but Bind and Run give `why`.
  static std::unique_ptr<CudaProgram> Planned(CudaSpec spec, absl::Status why);

  absl::Status Bind(absl::string_view name, void* data,
                    int64_t stride_bytes = 0, int64_t steps = 0) override;
  absl::Status Run(int64_t n) override;
  // Every node by itself, also of a graph. The time of each is the device's,
  // between an event before it and one after it on a stream that the host lets
  // run empty: it includes the way of a launch to an idle device, which is what
  // the trace's empty_ns is of.
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

  // One launch's nodes as they are, or as they would be on a device.
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
