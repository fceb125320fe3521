// SPDX-License-Identifier: Apache-2.0
// One run of a kernel on the CPU: the scheduler of the fibers and what they
// wait for. Used by emulator.cc, and by device_emulated.cc from the fibers.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_EMULATION_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_EMULATION_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/launch.h"
#include "tests/cuda_emulator/device_emulated.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/cuda_emulator/fiber.h"

namespace onestep {

using dev::Barrier;

inline constexpr uint32_t kMaxBarrierCount = (1 << 20) - 1;
inline constexpr uint64_t kBarrierMark = 1;

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
  int64_t stalled_until = 0;  // a round
};

struct Thread {
  dev::EmulatedThread self;
  int fiber = 0;
  Block* block = nullptr;
  WarpThreads* warp = nullptr;
  // The call it waits in; nullptr: it is ready.
  const char* waits_at = nullptr;
  const void* polled = nullptr;  // the address, where the call has one
  Barrier* barrier = nullptr;    // of WaitParity, as are these
  uint32_t parity = 0;
  uint64_t deadline = 0;
  bool timed_out = false;
  // Of a warp's call: what the lane brings and what it gets.
  uint32_t in = 0, out = 0;
  int argument = 0;
  float* d = nullptr;
  const uint32_t *a = nullptr, *b = nullptr;
  bool waited_for_prerequisites = false;
  bool owes_barrier_fence = false;  // called InitBarrier, not FenceBarrierInit
  int fence = 0;                    // its last FenceAsync, as the block counts
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
  // Calls of FenceAsync, and how many of them all threads know of by a barrier.
  int fences = 0, synced_fences = 0;
  // By source: what was pushed last, and after which fence.
  struct Pushed {
    size_t hash = 0;
    int fence = 0;
  };
  std::map<const void*, Pushed> pushed;
};

struct Copy {
  Block* issuer = nullptr;
  Block* target = nullptr;
  unsigned char* to = nullptr;
  const unsigned char* from = nullptr;
  uint32_t bytes = 0;
  Barrier* barrier = nullptr;
};

class Emulation {
 public:
  Emulation(const Launch& launch, const EmulatorOptions& options)
      : launch_(launch),
        options_(options),
        random_(options.seed),
        fibers_(Fibers()) {}

  absl::Status Refusal() const;
  absl::Status Run();

  // ---- called by the threads ----
  Thread& self() { return *running_; }
  uint64_t clock() const { return clock_; }
  // Ends the emulation: all threads stop where they are.
  [[noreturn]] void Fail(std::string&& what);
  // Waits until `size` threads are here; true for the last one, which has the
  // others in meeting.waiting and then calls Open.
  bool Arrive(Meeting& meeting, int size, const char* at);
  void Open(Meeting& meeting);
  // Lets others run, for one who asks again and again.
  void Poll(const char* at, const void* address);
  // Until the phase of this parity ends, or the deadline: then timed_out.
  void WaitAtBarrier(Barrier* barrier, uint32_t parity, uint64_t deadline);
  void Change() { ++changes_; }
  void Issue(const Copy& copy) { copies_.push_back(copy); }
  void EndPhaseIfComplete(Block& block, Barrier& barrier);
  // `p` to `p + bytes` as memory of the block's own shared memory.
  void CheckShared(const Block& block, const void* p, int64_t bytes,
                   const char* what);

 private:
  // Kept from run to run: their stacks are warm.
  static FiberPool& Fibers();
  uint64_t Below(uint64_t n) { return random_() % n; }
  void MakeWave(const std::vector<int64_t>& clusters);
  void MakeBlock(Block& block, int64_t index, uint32_t rank);
  absl::Status RunWave();
  void RunRound();
  void RunThread(Thread& thread);
  static void Entry(int fiber);
  void EndThread(Thread& thread);
  bool IsStalled(const Thread& thread) const {
    return thread.block->stalled_until > round_ ||
           thread.warp->stalled_until > round_;
  }
  void StallSome();
  void EndStalls();
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
  FiberPool& fibers_;
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

// The one that runs.
inline Emulation* emulation = nullptr;

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_EMULATION_H_
