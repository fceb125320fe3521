// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/emulator.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/cuda_emulator/device_emulated.h"
#include "tests/cuda_emulator/fiber.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace onestep {
namespace {

using dev::Barrier;

constexpr int kMaxBlockThreads = 1024;
constexpr int kMaxResidentThreads = 2048;  // of a multiprocessor
constexpr uint32_t kMaxBarrierCount = (1 << 20) - 1;
constexpr uint64_t kBarrierMark = 1;
constexpr int kRedZoneBytes = 256;
constexpr unsigned char kRedZone = 0xa5;
constexpr int kWaveThreads = 2048;  // of an ordinary launch, about
// Rounds in which every thread that runs only polls: then the clock runs
// faster and faster, and in the end it is a deadlock.
constexpr int kIdleRounds = 1000;
constexpr int kIdleRoundsOfClock = 200;

struct Block;

// All threads of a block, warp or cluster: the last to arrive lets all go on.
struct Meeting {
  const char* at = nullptr;  // the call that the first to arrive made
  std::vector<struct Thread*> waiting;
  int exited = 0;
};

struct WarpThreads {
  Meeting meeting;
  std::vector<struct Thread*> lanes;
};

struct Thread {
  dev::EmulatedThread self;
  int fiber = 0;
  Block* block = nullptr;
  // What it waits for; nullptr: it is ready. One of the two below may be set.
  const char* waits_at = nullptr;
  Barrier* barrier = nullptr;
  const void* polled = nullptr;
  uint32_t parity = 0;
  uint64_t deadline = 0;
  bool timed_out = false;
  // Of a warp's call: what the lane brings and what it gets.
  uint32_t in = 0, out = 0;
  int argument = 0;
  float* d = nullptr;
  const uint32_t *a = nullptr, *b = nullptr;
  bool waited_for_prerequisites = false;
};

struct Cluster {
  Meeting meeting;
  std::vector<Block*> blocks;
};

struct Block {
  Dim index;
  Cluster* cluster = nullptr;
  std::vector<WarpThreads> warps;
  Meeting meeting;
  std::vector<Thread*> at_barriers;  // in WaitParity
  std::vector<unsigned char> memory;
  unsigned char* shared = nullptr;
  int live = 0;  // threads that did not end
  int64_t stalled_until = 0;
};

struct Copy {
  Block* issuer = nullptr;
  Block* target = nullptr;
  unsigned char* to = nullptr;
  const unsigned char* from = nullptr;
  uint32_t bytes = 0;
  Barrier* barrier = nullptr;
};

std::string ToString(const Dim& dim) {
  return absl::StrCat(dim.x, ",", dim.y, ",", dim.z);
}

Dim DimOfIndex(int64_t index, const Dim& dim) {
  return {static_cast<uint32_t>(index % dim.x),
          static_cast<uint32_t>(index / dim.x % dim.y),
          static_cast<uint32_t>(index / dim.x / dim.y)};
}

// What ONESTEP_KERNEL left at the kernel's entry, or the device's bound.
int MaxThreads([[maybe_unused]] const void* kernel) {
  int warps = 0;
#ifdef __x86_64__
  const auto* code = static_cast<const unsigned char*>(kernel);
  while (warps < kMaxBlockThreads / 32 && code[warps] == 0x90) ++warps;
#endif
  return warps > 0 ? 32 * warps : kMaxBlockThreads;
}

class Emulation {
 public:
  Emulation(const Launch& launch, const EmulatorOptions& options)
      : launch_(launch), options_(options), random_(options.seed) {}

  absl::Status Refusal() const;
  absl::Status Run();

  // ---- called by the threads ----
  Thread& self() { return *running_; }
  bool cooperative() const { return launch_.cooperative; }
  const EmulatorOptions& options() const { return options_; }
  uint64_t& clock() { return clock_; }
  // Ends the emulation: all threads stop where they are.
  [[noreturn]] void Fail(std::string&& what);
  // Waits until `size` threads are here; true for the last one, which has the
  // others in meeting.waiting and then calls Open.
  bool Arrive(Meeting& meeting, int size, const char* at);
  void Open(Meeting& meeting);
  // Lets others run, for one who asks again and again.
  void Poll(const char* at, const void* address);
  void WaitAtBarrier(Barrier* barrier, uint32_t parity, uint64_t deadline);
  void Change() { ++changes_; }
  void Issue(const Copy& copy) { copies_.push_back(copy); }
  void EndPhaseIfComplete(Block& block, Barrier& barrier);
  // `p` to `p + bytes` as memory of the block's own shared memory.
  void CheckShared(const Block& block, const void* p, int64_t bytes,
                   const char* what);

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  void MakeWave(const std::vector<int64_t>& clusters);
  void MakeBlock(Block& block, int64_t index, uint32_t rank);
  absl::Status RunWave();
  void RunRound();
  void RunThread(Thread& thread);
  void RunBody();
  static void Entry(int fiber);
  void EndThread(Thread& thread);
  bool IsStalled(const Block& block) const {
    return block.stalled_until > round_;
  }
  void StallSomeBlock();
  void Deliver(size_t copy);
  void DeliverSome();
  bool ExpireDeadlines(bool jump);
  void NothingCanRun();
  void CheckRedZones();
  void SetError(std::string&& what);
  std::string WhoWaits() const;
  void Wake(Thread* thread);

  const Launch& launch_;
  const EmulatorOptions& options_;
  std::mt19937_64 random_;
  FiberPool fibers_;
  std::vector<Cluster> clusters_;
  std::vector<Block> blocks_;
  std::vector<Thread> threads_;
  std::vector<Thread*> ready_, round_threads_;
  std::vector<Copy> copies_;
  Thread* running_ = nullptr;
  std::string error_;
  int64_t live_ = 0, round_ = 0;
  uint64_t clock_ = 1, tick_ = 1;
  // Of all that another thread may wait for; rounds since the last.
  int64_t changes_ = 0;
  int idle_rounds_ = 0;
  uint64_t copy_delay_ = 1;
};

Emulation* emulation = nullptr;

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
  if (l.cooperative) {
    const int64_t by_shared =
        options_.max_shared_bytes / std::max<int64_t>(l.shared_bytes, 1);
    const int64_t resident =
        options_.multiprocessors *
        std::min<int64_t>(
            {kMaxResidentThreads / l.block.size(), by_shared, 32});
    if (l.grid.size() > resident) {
      return refuse("cooperative grid ", ToString(l.grid), ", want at most ",
                    resident, " blocks");
    }
  }
  return absl::OkStatus();
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
    const size_t size =
        launch_.cooperative ? left : std::min(left, 1 + Below(most));
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
    block.warps[i / 32].lanes.push_back(&thread);
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
  if (error_.empty()) return absl::OkStatus();
  return absl::InternalError(error_);
}

void Emulation::RunRound() {
  const int64_t changes = changes_;
  ++round_;
  clock_ += tick_;
  StallSomeBlock();
  std::swap(ready_, round_threads_);
  std::shuffle(round_threads_.begin(), round_threads_.end(), random_);
  bool ran = false;
  for (Thread* thread : round_threads_) {
    if (IsStalled(*thread->block)) {
      ready_.push_back(thread);
    } else if (error_.empty()) {
      ran = true;
      RunThread(*thread);
    }
  }
  round_threads_.clear();
  if (!ran) {
    for (Block& block : blocks_) block.stalled_until = 0;
  }
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

// So that one block is now and then far behind or ahead of the others.
void Emulation::StallSomeBlock() {
  if (blocks_.size() > 1 && Below(16) == 0) {
    blocks_[Below(blocks_.size())].stalled_until = round_ + 1 + Below(64);
  }
}

void Emulation::RunThread(Thread& thread) {
  running_ = &thread;
  dev::emulated_thread = &thread.self;
  thread.waits_at = nullptr;
  thread.polled = nullptr;
  fibers_.Resume(thread.fiber);
  running_ = nullptr;
  if (fibers_.StackOverflowed(thread.fiber)) {
    SetError("a thread's stack overflowed");
  }
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
  for (Meeting* meeting : {&block.warps[thread.self.linear / 32].meeting,
                           &block.meeting, &block.cluster->meeting}) {
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
  thread.waits_at = "WaitParity";
  thread.barrier = barrier;
  thread.parity = parity;
  thread.deadline = deadline;
  thread.timed_out = false;
  thread.block->at_barriers.push_back(&thread);
  fibers_.Suspend();
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

WarpThreads& OwnWarp() {
  const Thread& self = emulation->self();
  return self.block->warps[self.self.linear / 32];
}

// A call that all 32 lanes make together: the last to come runs `apply`.
template <typename Apply>
void WholeWarp(const char* at, Apply apply) {
  WarpThreads& warp = OwnWarp();
  if (warp.lanes.size() != 32) {
    emulation->Fail(absl::StrCat("at ", at, " in a warp of ", warp.lanes.size(),
                                 " threads"));
  }
  if (emulation->Arrive(warp.meeting, 32, at)) {
    apply(warp.lanes);
    emulation->Open(warp.meeting);
  }
}

}  // namespace

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

// ---- what the threads call -------------------------------------------------
namespace dev {

void SyncBlock() {
  Block& block = *emulation->self().block;
  const Dim& dim = emulation->self().self.block_dim;
  if (emulation->Arrive(block.meeting, dim.size(), "SyncBlock")) {
    emulation->Open(block.meeting);
  }
}

void SyncCluster() {
  Thread& self = emulation->self();
  Cluster& cluster = *self.block->cluster;
  if (emulation->Arrive(cluster.meeting,
                        self.self.block_dim.size() * self.self.cluster_size,
                        "SyncCluster")) {
    emulation->Open(cluster.meeting);
  }
}

void SyncWarp() {
  WarpThreads& warp = OwnWarp();
  if (emulation->Arrive(warp.meeting, warp.lanes.size(), "SyncWarp")) {
    emulation->Open(warp.meeting);
  }
}

uint32_t ShuffleXorBits(uint32_t v, int mask) {
  Thread& self = emulation->self();
  self.in = v;
  self.argument = mask;
  if (mask < 0 || mask > 31) emulation->Fail("ShuffleXor: want mask in [0,32)");
  WholeWarp("ShuffleXor", [](const std::vector<Thread*>& lanes) {
    for (int i = 0; i < 32; ++i) {
      lanes[i]->out = lanes[i ^ lanes[i]->argument]->in;
    }
  });
  return self.out;
}

uint32_t ShuffleBits(uint32_t v, int lane) {
  Thread& self = emulation->self();
  self.in = v;
  self.argument = lane;
  if (lane < 0 || lane > 31) emulation->Fail("Shuffle: want lane in [0,32)");
  WholeWarp("Shuffle", [](const std::vector<Thread*>& lanes) {
    for (Thread* lane : lanes) lane->out = lanes[lane->argument]->in;
  });
  return self.out;
}

bool AnyInWarp(bool v) {
  Thread& self = emulation->self();
  self.in = v;
  WholeWarp("AnyInWarp", [](const std::vector<Thread*>& lanes) {
    uint32_t any = 0;
    for (const Thread* lane : lanes) any |= lane->in;
    for (Thread* lane : lanes) lane->out = any;
  });
  return self.out != 0;
}

void MmaBf16(float d[4], const uint32_t a[4], const uint32_t b[2]) {
  Thread& self = emulation->self();
  self.d = d;
  self.a = a;
  self.b = b;
  WholeWarp("MmaBf16", [](const std::vector<Thread*>& lanes) {
    float ma[16][16], mb[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int half = 0; half < 2; ++half) {
        const auto part = [half](uint32_t v) {
          return Bf16ToFloat(half == 0 ? v & 0xffff : v >> 16);
        };
        const Thread& own = *lanes[lane];
        for (int i = 0; i < 4; ++i) {
          ma[g + i % 2 * 8][2 * t + i / 2 * 8 + half] = part(own.a[i]);
        }
        for (int i = 0; i < 2; ++i)
          mb[2 * t + i * 8 + half][g] = part(own.b[i]);
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        float sum = lanes[lane]->d[i];
        for (int k = 0; k < 16; ++k) sum += ma[row][k] * mb[k][column];
        lanes[lane]->d[i] = sum;
      }
    }
  });
}

void InitBarrier(Barrier* barrier, uint32_t arrivals) {
  emulation->Change();
  emulation->CheckShared(*emulation->self().block, barrier, sizeof(Barrier),
                         "InitBarrier");
  CheckAligned(barrier, sizeof(Barrier));
  if (arrivals < 1 || arrivals > kMaxBarrierCount) {
    emulation->Fail("InitBarrier: want arrivals in [1,2^20)");
  }
  *barrier = {.expected = arrivals,
              .pending = arrivals,
              .bytes = 0,
              .phase = 0,
              .mark = kBarrierMark};
}

void FenceBarrierInit() {}

namespace {

void CheckBarrier(const Barrier* barrier, const char* what) {
  emulation->CheckShared(*emulation->self().block, barrier, sizeof(Barrier),
                         what);
  CheckAligned(barrier, sizeof(Barrier));
  if (barrier->mark != kBarrierMark) {
    emulation->Fail(absl::StrCat(what, " before InitBarrier"));
  }
}

void CheckBulk(const void* to, const void* from, uint32_t bytes,
               const char* what) {
  const auto bits = reinterpret_cast<uintptr_t>(to) |
                    reinterpret_cast<uintptr_t>(from) | bytes;
  if (bits % 16 != 0 || bytes == 0 || bytes > kMaxBarrierCount) {
    emulation->Fail(absl::StrCat(
        what, ": want addresses and bytes in sixteens, got ", absl::Hex(to),
        ", ", absl::Hex(from), ", ", bytes, " bytes"));
  }
}

}  // namespace

void ArriveExpect(Barrier* barrier, uint32_t bytes) {
  emulation->Change();
  CheckBarrier(barrier, "ArriveExpect");
  if (barrier->pending == 0) {
    emulation->Fail("ArriveExpect: more arrivals than the phase has");
  }
  if (int64_t{bytes} + barrier->bytes > int64_t{kMaxBarrierCount}) {
    emulation->Fail("ArriveExpect: more than 2^20-1 bytes to come");
  }
  barrier->bytes += bytes;
  barrier->pending -= 1;
  emulation->EndPhaseIfComplete(*emulation->self().block, *barrier);
}

bool WaitParity(Barrier* barrier, uint32_t parity, uint64_t timeout_ns) {
  CheckBarrier(barrier, "WaitParity");
  if (parity > 1) emulation->Fail("WaitParity: want parity 0 or 1");
  if (barrier->phase != parity) return true;
  const uint64_t now = emulation->clock();
  emulation->WaitAtBarrier(
      barrier, parity,
      timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX);
  return !emulation->self().timed_out;
}

void FenceAsync() {}

void PushToBlock(void* to, const void* from, uint32_t bytes, Barrier* barrier,
                 uint32_t rank) {
  Thread& self = emulation->self();
  emulation->Change();
  CheckBulk(to, from, bytes, "PushToBlock");
  if (rank >= self.self.cluster_size) {
    emulation->Fail(absl::StrCat("PushToBlock: rank ", rank,
                                 " of a cluster of ", self.self.cluster_size));
  }
  emulation->CheckShared(*self.block, to, bytes, "PushToBlock to");
  emulation->CheckShared(*self.block, from, bytes, "PushToBlock from");
  emulation->CheckShared(*self.block, barrier, sizeof(Barrier),
                         "PushToBlock's barrier");
  Block& target = *self.block->cluster->blocks[rank];
  const auto there = [&](const void* p) {
    return target.shared +
           (static_cast<const unsigned char*>(p) - self.block->shared);
  };
  emulation->Issue({.issuer = self.block,
                    .target = &target,
                    .to = there(to),
                    .from = static_cast<const unsigned char*>(from),
                    .bytes = bytes,
                    .barrier = reinterpret_cast<Barrier*>(there(barrier))});
}

void BulkLoad(void* to_shared, const void* from_global, uint32_t bytes,
              Barrier* barrier) {
  Block& block = *emulation->self().block;
  emulation->Change();
  CheckBulk(to_shared, from_global, bytes, "BulkLoad");
  emulation->CheckShared(block, to_shared, bytes, "BulkLoad to");
  CheckBarrier(barrier, "BulkLoad");
  emulation->Issue({.issuer = &block,
                    .target = &block,
                    .to = static_cast<unsigned char*>(to_shared),
                    .from = static_cast<const unsigned char*>(from_global),
                    .bytes = bytes,
                    .barrier = barrier});
}

uint32_t LoadAcquire(const uint32_t* p) {
  emulation->Poll("LoadAcquire", p);
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

void AddRelease(uint32_t* p, uint32_t v) { AddAcqRel(p, v); }

uint32_t AddAcqRel(uint32_t* p, uint32_t v) {
  emulation->Change();
  return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
}

uint32_t LoadSystem(const uint32_t* p) {
  emulation->Poll("LoadSystem", p);
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}

void StoreSystem(uint32_t* p, uint32_t v) {
  emulation->Change();
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

void RequireCooperative() {
  if (!emulation->cooperative()) {
    emulation->Fail("SyncGrid in a launch that is not cooperative");
  }
}

uint64_t Nanoseconds() {
  emulation->Poll("Nanoseconds", nullptr);
  return emulation->clock();
}

void Trap() { emulation->Fail("Trap"); }

void WaitForPrerequisites() {
  emulation->self().waited_for_prerequisites = true;
}

void TriggerDependents() {}

void SetConditional(uint64_t handle, uint32_t value) {
  if (!emulation->options().set_conditional) {
    emulation->Fail("SetConditional outside of a graph");
  }
  emulation->options().set_conditional(handle, value);
}

void CheckAligned(const void* p, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(p) % alignment != 0) {
    emulation->Fail(absl::StrCat("address ", absl::Hex(p), ", want ", alignment,
                                 "-byte alignment"));
  }
}

}  // namespace dev
}  // namespace onestep
