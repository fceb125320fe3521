// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_LATENCY_WATCH_H_
#define ONESTEP_RUNTIME_CPU_LATENCY_WATCH_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace onestep {

// Classifies two cores as near or far by the time to load a cache line that the
// other core wrote, including a share of the clock's overhead: on two cores of
// a Zen 5, 18 ns when near and 123 ns when far. The scale differs from that of
// core_latency.h, where a core waits for the line: 42 and 180 ns.
class FarByLoads {
 public:
  // Adds a measured time to an exponential moving average; returns whether the
  // cores are far apart.
  bool Add(double ns) {
    // A shorter time means that the other core has not written since the last
    // probe, a longer one that this thread was preempted; both are ignored.
    if (ns < kLeastNs || ns > kMostNs) return far_;
    mean_ns_ += (ns - mean_ns_) / kWeight;
    far_ = mean_ns_ > (far_ ? kNearNs : kFarNs);
    return far_;
  }

 private:
  static constexpr double kLeastNs = 10, kMostNs = 1000;
  // Between the two figures above; the gap is a hysteresis against flicker.
  static constexpr double kNearNs = 50, kFarNs = 70;
  static constexpr double kWeight = 8;

  double mean_ns_ = kFarNs;
  bool far_ = true;  // the safer assumption before the first measurements
};

// Watches the distance of the cores of working threads: a virtual machine may
// move its cores from near to far and back within seconds. Every thread calls
// Probe from time to time; a probe times a few loads of cache lines that
// another thread wrote in its previous probe.
class LatencyWatch {
 public:
  // REQUIRES: workers >= 2.
  explicit LatencyWatch(int workers) : boards_(workers) {}

  // Returns whether the cores are far apart. Takes about 0.2 us when they are
  // near, 0.8 us when far. Thread rule: worker w calls with its own number.
  bool Probe(int w) {
    Board& mine = boards_[w];
    for (int i = 0; i < kLines; ++i) {
      mine.lines[i].next.store(kNext[i], std::memory_order_relaxed);
    }
    const int others = static_cast<int>(boards_.size()) - 1;
    const Board& other =
        boards_[(w + 1 + mine.probes++ % others) % (others + 1)];
    const int64_t begin = NowNs();
    uint32_t at = 0;  // each load depends on the previous one
    for (int i = 0; i < kLines; ++i) {
      at = other.lines[at].next.load(std::memory_order_relaxed);
    }
    const int64_t ns = NowNs() - begin;
    mine.last = at;
    return mine.far.Add(static_cast<double>(ns) / kLines);
  }

 private:
  static constexpr int kLines = 4;
  // Not in the order of addresses, so that no line is prefetched.
  static constexpr uint32_t kNext[kLines] = {2, 3, 1, 0};

  struct alignas(512) Line {
    std::atomic<uint32_t> next = 0;
  };
  struct Board {
    Line lines[kLines];
    // Used only by the board's worker.
    alignas(512) uint32_t probes = 0;
    uint32_t last = 0;  // keeps the compiler from removing the loads
    FarByLoads far;
  };
  std::vector<Board> boards_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_LATENCY_WATCH_H_
