// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_CHAIN_H_
#define ONESTEP_RUNTIME_CPU_CHAIN_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/buffer.h"
#include "runtime/base/executable.h"

namespace onestep {

// A slot is a region of memory that steps read or write: either the caller's
// memory, bound by name, or a slice of the chain's arena. Steps hold a pointer
// to the slot's address, so that they stay valid when Bind or a stride changes
// the address.
struct Slot {
  std::string name;  // the leaf's or result's name; "" for a temporary
  int64_t bytes = 0;
  int64_t offset = -1;  // in the arena; -1: the caller's memory
};

// An Executable of the CPU: a list of calls that run in sequence. Create and
// Finish allocate all memory; Run allocates none.
class Chain : public Executable {
 public:
  using Call = std::function<void()>;

  static absl::StatusOr<std::unique_ptr<Chain>> Create(std::vector<Slot> slots,
                                                       int64_t arena_bytes);

  // ---- building, by a lowering ----
  template <typename T>
  T* const* address(int slot) const {
    return reinterpret_cast<T* const*>(&addresses_[slot]);
  }
  // The slot's address in the next step. The pointer it points to is null
  // during the last step of a Run.
  template <typename T>
  T* const* next_address(int slot) const {
    return reinterpret_cast<T* const*>(&next_addresses_[slot]);
  }
  void AddStep(StepInfo info, Call call);
  // An optional fast path for a chain of a single call; Run ignores it for
  // longer chains. repeat(n) runs up to n consecutive steps, each on its own
  // strided addresses, and returns the number of steps it ran, at least 1. Its
  // results must be bit-identical to n separate calls.
  using Repeat = std::function<int64_t(int64_t n)>;
  void SetRepeat(Repeat repeat) { repeat_ = std::move(repeat); }
  // The number of bytes by which the slot's address advances after a step.
  int64_t stride_bytes(int slot) const;
  // Fills an f32 arena slot with a constant that keeps its value for the
  // lifetime of the chain.
  void FillSlot(int slot, float value);
  // Records an error of a call. Run stops after this call and returns the first
  // error.
  void Fail(absl::Status status) { error_.Update(std::move(status)); }
  // The slot of a scratch region that each step may use while it runs. It is as
  // large as the largest request, and its address is valid after Finish.
  static constexpr int kScratch = 0;
  void RequestScratch(int64_t bytes);
  // Allocates the scratch region and ends building. Returns ResourceExhausted
  // when the allocation fails.
  absl::Status Finish(std::string lowering, std::string plan);

  // ---- Executable ----
  absl::Status Bind(absl::string_view name, void* data,
                    int64_t stride_bytes = 0, int64_t steps = 0) override;
  absl::Status Run(int64_t n) override;
  absl::Status RunTraced(int64_t n, StepTrace& trace) override;
  // RunTraced in two halves, for a worker of a team. PrepareTrace allocates the
  // memory of `trace`; RunInto runs the steps and records times of NowTicks.
  // REQUIRES: both calls have the same `n`.
  void PrepareTrace(int64_t n, StepTrace::Worker& trace) const;
  absl::Status RunInto(int64_t n, StepTrace::Worker& trace);
  // Returns FailedPrecondition when a slot is not bound, as Run does.
  absl::Status CheckBound();
  const std::vector<StepInfo>& steps() const override { return infos_; }
  std::string lowering() const override { return lowering_; }
  const std::string& plan() const override { return plan_; }
  int64_t arena_bytes() const override {
    return arena_.bytes() + scratch_.bytes();
  }

 private:
  struct Stream {
    int slot;
    int64_t stride_bytes;
  };

  Chain() = default;
  void Advance(int64_t steps);
  // Runs n steps; calls stamp() at the begin of a step and after each call.
  template <typename Stamp>
  absl::Status RunSteps(int64_t n, const Stamp& stamp);

  std::vector<Slot> slots_;       // slots_[kScratch] is the scratch
  std::vector<void*> addresses_;  // one per slot; never resized
  std::vector<void*> next_addresses_;
  std::vector<Stream> streams_;
  std::vector<StepInfo> infos_;
  std::vector<Call> calls_;
  Repeat repeat_;  // may be empty
  Buffer arena_;
  Buffer scratch_;
  int64_t scratch_bytes_ = 0;
  bool all_bound_ = false;
  absl::Status error_;
  std::string lowering_;
  std::string plan_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_CHAIN_H_
