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

// A slot is one place of memory that steps read or write: bound by name from
// outside, or part of the chain's arena. Steps hold the address of the slot's
// address, so that binding and striding need not touch them.
struct Slot {
  std::string name;  // of a leaf or result; "" for a temporary
  int64_t bytes = 0;
  int64_t offset = -1;  // in the arena; -1: only outside memory
};

// Steps called one after the other: what a CPU lowering makes. All memory is
// taken by Create and Finish; Run allocates nothing.
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
  // Likewise in the step that follows; points to null when none does in this
  // Run.
  template <typename T>
  T* const* next_address(int slot) const {
    return reinterpret_cast<T* const*>(&next_addresses_[slot]);
  }
  void AddStep(StepInfo info, Call call);
  // Taken where the chain has one call: repeat(n) makes that of up to n steps,
  // each on the values bound for it, and returns of how many, at least one. The
  // same bits.
  using Repeat = std::function<int64_t(int64_t n)>;
  void SetRepeat(Repeat repeat) { repeat_ = std::move(repeat); }
  // By how much the slot's address advances after a step.
  int64_t stride_bytes(int slot) const;
  // Values of the whole life of the chain, written once here.
  void FillSlot(int slot, float value);
  // The first error of a call; Run stops there and returns it.
  void Fail(absl::Status status) { error_.Update(std::move(status)); }
  // Memory that any step may use while it runs; grows to the largest request.
  // Its address is valid once Finish was called.
  static constexpr int kScratch = 0;
  void RequestScratch(int64_t bytes);
  // Ends building.
  absl::Status Finish(std::string lowering, std::string plan);

  // ---- Executable ----
  absl::Status Bind(absl::string_view name, void* data,
                    int64_t stride_bytes = 0, int64_t steps = 0) override;
  absl::Status Run(int64_t n) override;
  absl::Status RunTraced(int64_t n, StepTrace& trace) override;
  // The same in two halves, for a worker of a team: takes the memory; runs and
  // fills it, by NowTicks. REQUIRES: `n` of both are equal.
  void PrepareTrace(int64_t n, StepTrace::Worker& trace) const;
  absl::Status RunInto(int64_t n, StepTrace::Worker& trace);
  // What Run says first: FailedPrecondition when something is not bound.
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
  // Calls stamp() when a step begins and after each of its calls.
  template <typename Stamp>
  absl::Status RunSteps(int64_t n, const Stamp& stamp);

  std::vector<Slot> slots_;       // slots_[kScratch] is the scratch
  std::vector<void*> addresses_;  // one per slot; never resized
  std::vector<void*> next_addresses_;
  std::vector<Stream> streams_;
  std::vector<StepInfo> infos_;
  std::vector<Call> calls_;
  Repeat repeat_;  // of the last call, or none
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
