// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/emulator.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/cuda_emulator/emulation.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace onestep {
namespace {

constexpr int kMaxBlockThreads = 1024;
constexpr int kRedZoneBytes = 256;
constexpr unsigned char kRedZone = 0xa5;
constexpr int kWaveThreads = 2048;  // of an ordinary launch, about
// Rounds in which every thread that runs only polls: then the clock runs
// faster and faster, and in the end it is a deadlock.
constexpr int kIdleRounds = 1000;
constexpr int kIdleRoundsOfClock = 200;

std::string ToString(const Dim& dim) {
  return absl::StrCat(dim.x, ",", dim.y, ",", dim.z);
}

Dim DimOfIndex(int64_t index, const Dim& dim) {
  return {static_cast<uint32_t>(index % dim.x),
          static_cast<uint32_t>(index / dim.x % dim.y),
          static_cast<uint32_t>(index / dim.x / dim.y)};
}

// What ONESTEP_KERNEL left at the kernel's entry, in whole warps; where that
// cannot be read, the device's bound.
int MaxThreads([[maybe_unused]] const void* kernel) {
  int warps = 0;
#if defined(__x86_64__) && !defined(__clang__)
  const auto* code = static_cast<const unsigned char*>(kernel);
  while (warps < kMaxBlockThreads / 32 && code[warps] == 0x90) ++warps;
#endif
  return warps > 0 ? 32 * warps : kMaxBlockThreads;
}

}  // namespace

absl::Status Emulation::Refusal() const {
  const Launch& l = launch_;
  const auto refuse = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(l.name, ": ", what...));
  };
  if (l.kernel == nullptr || l.emulated == nullptr) {
    return refuse("not made by ONESTEP_LAUNCH in emulated kernels");
  }
  if (l.grid.size() == 0 || l.block.size() == 0) {
    return refuse("empty grid ", ToString(l.grid), " or block ",
                  ToString(l.block));
  }
  if (l.grid.x > 0x7fffffff || l.grid.y > 65535 || l.grid.z > 65535) {
    return refuse("grid ", ToString(l.grid), " is too large");
  }
  const int bound = MaxThreads(l.kernel);
  if (l.block.size() > bound || l.block.z > 64) {
    return refuse("block ", ToString(l.block), ", want at most ", bound,
                  " threads and 64 along z");
  }
  if (l.shared_bytes > static_cast<uint32_t>(options_.max_shared_bytes)) {
    return refuse(l.shared_bytes, " bytes of shared memory, want at most ",
                  options_.max_shared_bytes);
  }
  if (l.cluster < 1 || static_cast<int>(l.cluster) > options_.max_cluster ||
      l.grid.x % l.cluster != 0) {
    return refuse("cluster ", l.cluster, " of grid ", ToString(l.grid),
                  ", want a divisor of x and at most ", options_.max_cluster);
  }
  if (l.args_bytes > Launch::kMaxArgsBytes) {
    return refuse(l.args_bytes, " bytes of arguments");
  }
  return absl::OkStatus();
}

FiberPool& Emulation::Fibers() {
  static FiberPool fibers;
  return fibers;
}

absl::Status Emulation::Run() {
  // Blocks of a cluster lie along x, so that their numbers are neighbours.
  std::vector<int64_t> order(launch_.grid.size() / launch_.cluster);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random_);
  const int64_t threads = launch_.block.size() * launch_.cluster;
  const size_t most = std::max<int64_t>(kWaveThreads / threads, 1);
  for (size_t done = 0; done < order.size();) {
    const size_t left = order.size() - done;
    const size_t size = 1 + Below(std::min(left, most));
    MakeWave({order.begin() + done, order.begin() + done + size});
    if (absl::Status status = RunWave(); !status.ok()) return status;
    done += size;
  }
  return absl::OkStatus();
}

void Emulation::MakeWave(const std::vector<int64_t>& clusters) {
  clusters_.assign(clusters.size(), {});
  blocks_.clear();
  blocks_.resize(clusters.size() * launch_.cluster);
  threads_.assign(blocks_.size() * launch_.block.size(), {});
  ready_.clear();
  for (size_t c = 0; c < clusters.size(); ++c) {
    for (uint32_t rank = 0; rank < launch_.cluster; ++rank) {
      Block& block = blocks_[c * launch_.cluster + rank];
      block.cluster = &clusters_[c];
      clusters_[c].blocks.push_back(&block);
      MakeBlock(block, clusters[c] * launch_.cluster + rank, rank);
    }
  }
  live_ = threads_.size();
  fibers_.Reset(threads_.size(), &Entry);
  const uint64_t delays[] = {1, 4, 32};
  copy_delay_ = delays[Below(3)];
}

void Emulation::MakeBlock(Block& block, int64_t index, uint32_t rank) {
  block.index = DimOfIndex(index, launch_.grid);
  block.memory.assign(launch_.shared_bytes + 2 * kRedZoneBytes + 128, kRedZone);
  const auto begin = reinterpret_cast<uintptr_t>(block.memory.data());
  block.shared = block.memory.data() + kRedZoneBytes + (-begin & 127);
  std::fill_n(block.shared, launch_.shared_bytes, 0xff);
#ifdef __SANITIZE_ADDRESS__
  ASAN_POISON_MEMORY_REGION(block.memory.data(), block.memory.size());
  ASAN_UNPOISON_MEMORY_REGION(block.shared, launch_.shared_bytes);
#endif
  const int size = launch_.block.size();
  block.live = size;
  block.warps.resize((size + 31) / 32);
  const size_t first = (&block - blocks_.data()) * size;
  for (int i = 0; i < size; ++i) {
    Thread& thread = threads_[first + i];
    thread.self = {.thread = DimOfIndex(i, launch_.block),
                   .block = block.index,
                   .block_dim = launch_.block,
                   .grid_dim = launch_.grid,
                   .linear = static_cast<uint32_t>(i),
                   .cluster_rank = rank,
                   .cluster_size = launch_.cluster,
                   .shared = block.shared};
    thread.fiber = first + i;
    thread.block = &block;
    thread.warp = &block.warps[i / 32];
    thread.warp->lanes.push_back(&thread);
    ready_.push_back(&thread);
  }
}

absl::Status Emulation::RunWave() {
  while (live_ > 0 && error_.empty()) {
    DeliverSome();
    if (ready_.empty()) {
      NothingCanRun();
    } else {
      RunRound();
    }
  }
  while (!copies_.empty() && error_.empty()) Deliver(0);
  CheckRedZones();
  if (fibers_.StackOverflowed()) SetError("a thread's stack overflowed");
  if (error_.empty()) return absl::OkStatus();
  return absl::InternalError(error_);
}

void Emulation::RunRound() {
  const int64_t changes = changes_;
  ++round_;
  clock_ += tick_;
  StallSome();
  std::swap(ready_, round_threads_);
  std::shuffle(round_threads_.begin(), round_threads_.end(), random_);
  bool ran = false;
  for (Thread* thread : round_threads_) {
    if (IsStalled(*thread)) {
      ready_.push_back(thread);
    } else if (error_.empty()) {
      ran = true;
      RunThread(*thread);
    }
  }
  round_threads_.clear();
  if (!ran) EndStalls();
  if (changes_ != changes || !copies_.empty()) {
    idle_rounds_ = 0;
    tick_ = 1;
  } else if (++idle_rounds_ > kIdleRounds) {
    tick_ = std::min(tick_ * 2, uint64_t{1} << 40);
    ExpireDeadlines(/*jump=*/false);
    if (idle_rounds_ > kIdleRounds + kIdleRoundsOfClock) {
      SetError(absl::StrCat("deadlock: ", WhoWaits()));
    }
  }
}

// So that a block or a warp is now and then far behind the others.
void Emulation::StallSome() {
  if (Below(16) != 0) return;
  Block& block = blocks_[Below(blocks_.size())];
  if (blocks_.size() > 1 && Below(2) == 0) {
    block.stalled_until = round_ + 1 + Below(64);
  } else {
    block.warps[Below(block.warps.size())].stalled_until =
        round_ + 1 + Below(16);
  }
}

void Emulation::EndStalls() {
  for (Block& block : blocks_) {
    block.stalled_until = 0;
    for (WarpThreads& warp : block.warps) warp.stalled_until = 0;
  }
}

void Emulation::RunThread(Thread& thread) {
  running_ = &thread;
  dev::emulated_thread = &thread.self;
  thread.waits_at = nullptr;
  thread.polled = nullptr;
  fibers_.Resume(thread.fiber);
  running_ = nullptr;
}

void Emulation::Entry(int fiber) {
  Emulation& e = *emulation;
  e.Change();
  e.launch_.emulated(e.launch_.kernel, e.launch_.args);
  e.EndThread(e.threads_[fiber]);
}

void Emulation::EndThread(Thread& thread) {
  Change();
  if (launch_.waits && !thread.waited_for_prerequisites) {
    Fail("ended without WaitForPrerequisites, but its launch says it waits");
  }
  Block& block = *thread.block;
  for (Meeting* meeting :
       {&thread.warp->meeting, &block.meeting, &block.cluster->meeting}) {
    if (!meeting->waiting.empty()) {
      Fail(absl::StrCat("ended while others wait at ", meeting->at));
    }
    ++meeting->exited;
  }
  --block.live;
  --live_;
}

void Emulation::SetError(std::string&& what) {
  if (error_.empty()) error_ = absl::StrCat(launch_.name, ": ", what);
}

void Emulation::Fail(std::string&& what) {
  const dev::EmulatedThread& self = running_->self;
  error_ = absl::StrCat(launch_.name, ": thread ", ToString(self.thread),
                        " of block ", ToString(self.block), ": ", what, "; ",
                        WhoWaits());
  // This stack never unwinds, so that what it owns would leak.
  std::string().swap(what);
  fibers_.Suspend();
  std::abort();  // nothing runs after an error
}

bool Emulation::Arrive(Meeting& meeting, int size, const char* at) {
  Change();
  if (meeting.exited > 0) {
    Fail(absl::StrCat("at ", at, ", which other threads ended without"));
  }
  if (meeting.waiting.empty()) meeting.at = at;
  if (std::string_view(meeting.at) != at) {
    Fail(absl::StrCat("at ", at, " while others wait at ", meeting.at));
  }
  if (static_cast<int>(meeting.waiting.size()) + 1 == size) return true;
  meeting.waiting.push_back(running_);
  running_->waits_at = at;
  fibers_.Suspend();
  return false;
}

void Emulation::Open(Meeting& meeting) {
  for (Thread* thread : meeting.waiting) Wake(thread);
  meeting.waiting.clear();
}

void Emulation::Wake(Thread* thread) {
  thread->waits_at = nullptr;
  ready_.push_back(thread);
}

void Emulation::Poll(const char* at, const void* address) {
  running_->waits_at = at;
  running_->polled = address;
  ready_.push_back(running_);
  fibers_.Suspend();
}

void Emulation::WaitAtBarrier(Barrier* barrier, uint32_t parity,
                              uint64_t deadline) {
  Thread& thread = *running_;
  thread.barrier = barrier;
  thread.parity = parity;
  thread.deadline = deadline;
  thread.timed_out = false;
  // One that slept through two ends sees the parity of before, as on a device.
  while (barrier->phase == parity && !thread.timed_out) {
    thread.waits_at = "WaitParity";
    thread.block->at_barriers.push_back(&thread);
    fibers_.Suspend();
  }
}

void Emulation::EndPhaseIfComplete(Block& block, Barrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.pending = barrier.expected;
  // Who waits for the phase before this one was served when it began.
  std::erase_if(block.at_barriers, [&](Thread* thread) {
    if (thread->barrier != &barrier || thread->parity == barrier.phase) {
      return false;
    }
    Wake(thread);
    return true;
  });
}

void Emulation::CheckShared(const Block& block, const void* p, int64_t bytes,
                            const char* what) {
  const int64_t at = static_cast<const unsigned char*>(p) - block.shared;
  if (at < 0 || at + bytes > launch_.shared_bytes) {
    Fail(absl::StrCat(what, ": shared bytes ", at, " to ", at + bytes, " of ",
                      launch_.shared_bytes));
  }
}

void Emulation::DeliverSome() {
  for (size_t i = copies_.size(); i-- > 0;) {
    if (Below(copy_delay_) == 0 && i < copies_.size()) {
      Deliver(Below(copies_.size()));
    }
  }
}

void Emulation::Deliver(size_t index) {
  const Copy copy = copies_[index];
  copies_[index] = copies_.back();
  copies_.pop_back();
  if (copy.target->live == 0 || copy.issuer->live == 0) {
    return SetError(absl::StrCat(
        "a bulk copy of block ", ToString(copy.issuer->index), " to block ",
        ToString(copy.target->index), " was under way when one of them ended"));
  }
  Barrier& barrier = *copy.barrier;
  if (barrier.mark != kBarrierMark) {
    return SetError("a bulk copy came to a barrier without InitBarrier");
  }
  std::memcpy(copy.to, copy.from, copy.bytes);
  if (barrier.bytes - int64_t{copy.bytes} < -int64_t{kMaxBarrierCount}) {
    return SetError("more than 2^20-1 bytes came that were not announced");
  }
  barrier.bytes -= copy.bytes;
  EndPhaseIfComplete(*copy.target, barrier);
}

// Lets those go whose time is up; with `jump`, the next of them.
bool Emulation::ExpireDeadlines(bool jump) {
  uint64_t next = UINT64_MAX;
  for (const Block& block : blocks_) {
    for (const Thread* thread : block.at_barriers) {
      next = std::min(next, thread->deadline);
    }
  }
  if (next == UINT64_MAX) return false;
  if (jump) clock_ = std::max(clock_, next);
  for (Block& block : blocks_) {
    std::erase_if(block.at_barriers, [&](Thread* thread) {
      if (thread->deadline > clock_) return false;
      thread->timed_out = true;
      Wake(thread);
      return true;
    });
  }
  return true;
}

void Emulation::NothingCanRun() {
  if (!copies_.empty()) {
    Deliver(Below(copies_.size()));
  } else if (!ExpireDeadlines(/*jump=*/true)) {
    SetError(absl::StrCat("deadlock: ", WhoWaits()));
  }
}

void Emulation::CheckRedZones() {
  for (Block& block : blocks_) {
#ifdef __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(block.memory.data(), block.memory.size());
#endif
    const auto intact = [](const unsigned char* p) {
      return std::all_of(p, p + kRedZoneBytes,
                         [](unsigned char c) { return c == kRedZone; });
    };
    if (!intact(block.shared - kRedZoneBytes) ||
        !intact(block.shared + launch_.shared_bytes)) {
      SetError(absl::StrCat("block ", ToString(block.index),
                            " wrote outside its shared memory of ",
                            launch_.shared_bytes, " bytes"));
    }
  }
}

std::string Emulation::WhoWaits() const {
  std::map<std::string, int> counts;
  for (const Thread& thread : threads_) {
    if (thread.waits_at == nullptr) continue;
    std::string at = absl::StrCat("block ", ToString(thread.block->index),
                                  " at ", thread.waits_at);
    if (std::string_view(thread.waits_at) == "WaitParity") {
      const Barrier& b = *thread.barrier;
      absl::StrAppend(
          &at, "(shared + ",
          reinterpret_cast<const unsigned char*>(&b) - thread.block->shared,
          ", parity ", thread.parity, "), pending ", uint64_t{b.pending},
          " arrivals and ", int64_t{b.bytes}, " bytes");
    } else if (thread.polled != nullptr) {
      absl::StrAppend(&at, " of ", absl::Hex(thread.polled));
    }
    ++counts[at];
  }
  std::vector<std::string> lines;
  for (const auto& [at, count] : counts) {
    if (lines.size() == 8) {
      lines.push_back("...");
      break;
    }
    lines.push_back(absl::StrCat(count, " of ", at));
  }
  return absl::StrCat("waiting: ",
                      lines.empty() ? "none" : absl::StrJoin(lines, "; "));
}

absl::Status Emulate(const Launch& launch, const EmulatorOptions& options) {
  if (emulation != nullptr) {
    return absl::FailedPreconditionError("another emulation runs");
  }
  Emulation run(launch, options);
  if (absl::Status refusal = run.Refusal(); !refusal.ok()) return refusal;
  emulation = &run;
  const absl::Status status = run.Run();
  emulation = nullptr;
  return status;
}

absl::Status Emulate(const Launch& launch, uint64_t seed) {
  EmulatorOptions options;
  options.seed = seed;
  return Emulate(launch, options);
}

}  // namespace onestep
