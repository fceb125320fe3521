// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/chain.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/cpu/openmp_forks.h"

namespace onestep {

absl::StatusOr<std::unique_ptr<Chain>> Chain::Create(std::vector<Slot> slots,
                                                     int64_t arena_bytes) {
  CHECK(!slots.empty() && slots[kScratch].offset < 0);
  std::unique_ptr<Chain> chain(new Chain);
  ASSIGN_OR_RETURN(chain->arena_, Buffer::Create(arena_bytes));
  chain->slots_ = std::move(slots);
  chain->addresses_.resize(chain->slots_.size());
  chain->next_addresses_.resize(chain->slots_.size());
  for (size_t i = 0; i < chain->slots_.size(); ++i) {
    const Slot& slot = chain->slots_[i];
    if (slot.offset < 0) continue;
    CHECK(slot.offset + slot.bytes <= arena_bytes);
    chain->addresses_[i] = chain->arena_.as<char>() + slot.offset;
  }
  return chain;
}

void Chain::AddStep(StepInfo info, Call call) {
  infos_.push_back(std::move(info));
  calls_.push_back(std::move(call));
}

void Chain::FillSlot(int slot, float value) {
  float* const x = static_cast<float*>(addresses_[slot]);
  std::fill_n(x, slots_[slot].bytes / sizeof(float), value);
}

void Chain::RequestScratch(int64_t bytes) {
  scratch_bytes_ = std::max(scratch_bytes_, bytes);
}

absl::Status Chain::Finish(std::string lowering, std::string plan) {
  ASSIGN_OR_RETURN(scratch_, Buffer::Create(scratch_bytes_));
  addresses_[kScratch] = scratch_.data();
  lowering_ = std::move(lowering);
  plan_ = std::move(plan);
  absl::StrAppend(&plan_, "scratch shared by all steps: ", scratch_bytes_,
                  " bytes\n");
  return absl::OkStatus();
}

absl::Status Chain::Bind(absl::string_view name, void* data,
                         int64_t stride_bytes, int64_t) {
  const auto it =
      std::find_if(slots_.begin() + 1, slots_.end(),
                   [&](const Slot& slot) { return slot.name == name; });
  if (it == slots_.end() || name.empty()) {
    return absl::NotFoundError(absl::StrCat("bind: no value named ", name));
  }
  const int slot = static_cast<int>(it - slots_.begin());
  addresses_[slot] = data;
  all_bound_ = false;
  std::erase_if(streams_, [&](const Stream& s) { return s.slot == slot; });
  if (stride_bytes != 0) streams_.push_back({slot, stride_bytes});
  return absl::OkStatus();
}

absl::Status Chain::CheckBound() {
  if (all_bound_) return absl::OkStatus();
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (addresses_[i] == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("run: ", slots_[i].name, " is not bound"));
    }
  }
  all_bound_ = true;
  return absl::OkStatus();
}

int64_t Chain::stride_bytes(int slot) const {
  for (const Stream& s : streams_) {
    if (s.slot == slot) return s.stride_bytes;
  }
  return 0;
}

void Chain::Advance(int64_t steps) {
  for (const Stream& s : streams_) {
    addresses_[s.slot] =
        static_cast<char*>(addresses_[s.slot]) + steps * s.stride_bytes;
  }
}

template <typename Stamp>
absl::Status Chain::RunSteps(int64_t n, const Stamp& stamp) {
  RETURN_IF_ERROR(CheckBound());
  next_addresses_ = addresses_;
  for (int64_t t = 0; t < n; ++t) {
    if (t + 1 == n) {
      std::fill(next_addresses_.begin(), next_addresses_.end(), nullptr);
    } else {
      for (const Stream& s : streams_) {
        next_addresses_[s.slot] =
            static_cast<char*>(addresses_[s.slot]) + s.stride_bytes;
      }
    }
    stamp();
    for (const Call& call : calls_) {
      call();
      if (!error_.ok()) return error_;
      stamp();
    }
    Advance(1);
  }
  return absl::OkStatus();
}

absl::Status Chain::Run(int64_t n) {
  if (calls_.size() != 1 || !repeat_) return RunSteps(n, [] {});
  RETURN_IF_ERROR(CheckBound());
  while (n > 0) {
    const int64_t done = repeat_(n);
    if (!error_.ok()) return error_;
    Advance(done);
    n -= done;
  }
  return absl::OkStatus();
}

void Chain::PrepareTrace(int64_t n, StepTrace::Worker& trace) const {
  trace.calls = std::ssize(calls_);
  trace.stamps.assign(n * (trace.calls + 1), 0);
}

absl::Status Chain::RunInto(int64_t n, StepTrace::Worker& trace) {
  int64_t* stamp = trace.stamps.data();
  return RunSteps(n, [&stamp] { *stamp++ = NowTicks(); });
}

absl::Status Chain::RunTraced(int64_t n, StepTrace& trace) {
  trace.steps = n;
  trace.workers.resize(1);
  StepTrace::Worker& worker = trace.workers[0];
  PrepareTrace(n, worker);
  // No known call opens more than two parallel regions.
  worker.forks.assign(2 * n * worker.calls, {});
  const ForkRecorder recorder(worker.forks);
  TickScale scale;
  trace.begin = worker.begin = NowTicks();
  const absl::Status status = RunInto(n, worker);
  trace.end = worker.end = NowTicks();
  scale.End();
  worker.forks_recorded =
      std::min<int64_t>(recorder.count(), std::ssize(worker.forks));
  worker.forks_missed = recorder.count() - worker.forks_recorded;
  trace.TicksToNs(scale);
  return status;
}

}  // namespace onestep
