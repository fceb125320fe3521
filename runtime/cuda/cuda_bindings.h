// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_BINDINGS_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_BINDINGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/executable.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_handle.h"
#include "runtime/cuda/cuda_table_ring.h"

namespace onestep {

// One place of device memory: a slot of the memory plan and what it is to the
// caller.
struct CudaSlot {
  enum Role : uint8_t { kTemporary, kInput, kParam, kResult };
  Role role = kTemporary;
  std::string name;  // "" for a temporary
  int64_t bytes = 0;
  int64_t offset = -1;  // in the arena; -1: memory of its own
};

// A table whose rows the steps read; input `indices` has the rows' numbers.
struct CudaTable {
  int slot = 0, indices = 0;
  int64_t row_bytes = 0;
};

// The device's copies of what is bound. A value that advances with the step
// lies on the device as an array over all steps that the host has, so that
// nothing is copied between two steps.
//
// The first run after Bind copies the inputs that do not advance; those of at
// most kWatchedBytes are copied again whenever their host values have changed.
class CudaBindings {
 public:
  static constexpr int64_t kWatchedBytes = 64 << 10;

  // The kernels' StepControl, with the step at its start.
  static constexpr int64_t kControlBytes = 256;

  // `table_limit_bytes`: device memory for all tables together. Larger tables
  // stay on the host, and their rows are copied as the steps need them.
  static absl::StatusOr<std::unique_ptr<CudaBindings>> Create(
      CudaApi& cuda, CudaApi::Stream stream, std::vector<CudaSlot> slots,
      std::vector<CudaTable> tables, int64_t arena_bytes,
      int64_t workspace_bytes, int64_t table_limit_bytes);
  // Without a device, for a plan that never runs: addresses are made up, all is
  // bound, and everything but the tables advances, as in a training run.
  static std::unique_ptr<CudaBindings> Planned(std::vector<CudaSlot> slots,
                                               std::vector<CudaTable> tables,
                                               int64_t arena_bytes,
                                               int64_t workspace_bytes);
  ~CudaBindings();

  // ---- what kernels are given ----
  // The address of the slot's value in the current step, for a kernel that does
  // not count steps.
  void* at(int slot) const { return places_[slot].address; }
  // The same for a kernel that counts steps: the value of step s is at
  // base + s * stride_bytes. With stride 0 it is at(slot).
  struct Advancing {
    void* base = nullptr;
    int64_t stride_bytes = 0;
  };
  Advancing advancing(int slot) const;
  bool bound(int slot) const { return places_[slot].host != nullptr; }
  void* control() const { return control_; }
  char* workspace() const { return workspace_; }
  int size() const { return static_cast<int>(places_.size()); }
  const CudaSlot& slot(int i) const { return places_[i].slot; }

  // ---- a run ----
  // As Executable::Bind.
  absl::Status Bind(absl::string_view name, void* data, int64_t stride_bytes,
                    int64_t steps);
  void ParamsChanged() { params_stale_ = true; }
  // Copies what the next `n` steps need. Returns whether the step count has
  // restarted at 0. layout() grows if an address has changed.
  absl::StatusOr<bool> BeginRun(int64_t n);
  // Copies the rows of steps [first, first + count) of the run, if tables stay
  // on the host. REQUIRES: chunks in order, count <= chunk_steps().
  absl::Status BeginChunk(int64_t first, int64_t count);
  absl::Status EndChunk();
  // The most steps of one BeginChunk; 0: all tables are on the device.
  int64_t chunk_steps() const {
    return ring_ == nullptr ? 0 : ring_->chunk_steps();
  }
  // Copies the results of these n steps to the host; waits for the stream.
  absl::Status EndRun(int64_t n);
  absl::Status ParamsToHost();

  // Grows whenever an address that kernels were given is no longer valid.
  int64_t layout() const { return layout_; }
  // The first step of the run that BeginRun prepared.
  int64_t step() const { return step_; }
  const DeviceTraffic& traffic() const { return traffic_; }

 private:
  struct Place {
    CudaSlot slot;
    void* address = nullptr;
    std::shared_ptr<CudaMemory> memory;  // of its own, or a shared table's
    char* host = nullptr;                // where the caller's next value is
    int64_t stride_bytes = 0;
    int64_t steps_left = 0;   // that the host has; 0: not known
    bool stale = false;       // the device has not the host's value
    CudaMemory array;         // of the values of many steps
    int64_t array_steps = 0;  // that it can hold
    CudaPinnedMemory staging;
    int64_t staging_bytes = 0;
  };

  CudaBindings() = default;
  bool is_table(int slot) const;
  absl::StatusOr<CudaMemory> Allocate(int64_t bytes);
  absl::Status PlaceTables(int64_t limit_bytes);
  absl::Status CheckBound() const;
  absl::Status ToDevice(void* device, const void* host, int64_t bytes);
  absl::Status ToHost(void* host, const void* device, int64_t bytes);
  absl::Status Stage(Place& place, int64_t bytes);
  absl::Status CopyFixed(int slot);
  absl::Status CopyTable(Place& place);
  absl::Status Reserve(Place& place, int64_t steps);
  absl::Status CopyArray(int slot, int64_t steps);
  absl::Status Restart(int64_t n);

  CudaApi* cuda_ = nullptr;
  CudaApi::Stream stream_ = nullptr;
  std::vector<Place> places_;
  std::vector<CudaTable> tables_;
  CudaMemory arena_, workspace_memory_, control_memory_;
  void* control_ = nullptr;
  char* workspace_ = nullptr;
  std::unique_ptr<CudaTableRing> ring_;  // null: tables lie on the device
  int64_t layout_ = 0, step_ = 0, steps_ready_ = 0;
  bool restart_ = true, params_stale_ = true;
  DeviceTraffic traffic_;  // of copies
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_BINDINGS_H_
