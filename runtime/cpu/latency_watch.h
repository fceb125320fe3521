// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_LATENCY_WATCH_H_
#define ONESTEP_RUNTIME_CPU_LATENCY_WATCH_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace onestep {

// Whether cores are far apart, by the time in which one loads a line that
// another wrote, its part of the clock's own in it: on two cores of a Zen 5
// 18 ns while near, 123 while far. That is not core_latency.h's scale, on which
// a line goes to a core that waits for it: 42 and 180 there.
class FarByLoads {
 public:
  // Whether they are, by the mean in which the last times count most.
  bool Add(double ns) {
    // Less: the other wrote nothing since. More: this thread was stopped.
    if (ns < kLeastNs || ns > kMostNs) return far_;
    mean_ns_ += (ns - mean_ns_) / kWeight;
    far_ = mean_ns_ > (far_ ? kNearNs : kFarNs);
    return far_;
  }

 private:
  static constexpr double kLeastNs = 10, kMostNs = 1000;
  // Between the two figures above; apart, so that it does not flicker.
  static constexpr double kNearNs = 50, kFarNs = 70;
  static constexpr double kWeight = 8;

  double mean_ns_ = kFarNs;
  bool far_ = true;  // until known to be near: the lesser harm
};

// How far apart the cores of working threads are, told while they work: a
// virtual machine moves its cores, from near to far and back within seconds.
// All threads probe now and then; a probe times a few loads of lines that
// another one wrote in its last.
class LatencyWatch {
 public:
  // REQUIRES: workers >= 2.
  explicit LatencyWatch(int workers) : boards_(workers) {}

  // By worker w's thread; some 0.2 us where cores are near, 0.8 where far.
  // Whether they are far.
  bool Probe(int w) {
    Board& own = boards_[w];
    for (int i = 0; i < kLines; ++i) {
      own.lines[i].next.store(kNext[i], std::memory_order_relaxed);
    }
    const int others = static_cast<int>(boards_.size()) - 1;
    const Board& other =
        boards_[(w + 1 + own.probes++ % others) % (others + 1)];
    const int64_t begin = NowNs();
    uint32_t at = 0;  // each load tells where the next one is
    for (int i = 0; i < kLines; ++i) {
      at = other.lines[at].next.load(std::memory_order_relaxed);
    }
    const int64_t ns = NowNs() - begin;
    own.last = at;
    return own.far.Add(static_cast<double>(ns) / kLines);
  }

 private:
  static constexpr int kLines = 4;
  // Not in order of address, so that no line is fetched ahead.
  static constexpr uint32_t kNext[kLines] = {2, 3, 1, 0};

  struct alignas(512) Line {
    std::atomic<uint32_t> next = 0;
  };
  struct Board {
    Line lines[kLines];
    // Of the owner alone.
    alignas(512) uint32_t probes = 0;
    uint32_t last = 0;  // so that the loads are made
    FarByLoads far;
  };
  std::vector<Board> boards_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_LATENCY_WATCH_H_
