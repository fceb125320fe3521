// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_CLOCK_H_
#define ONESTEP_RUNTIME_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace onestep {

// Nanoseconds of the steady clock. A call takes about 20 ns on x86.
inline int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

#if defined(__x86_64__)
// Whether the time stamp counter has a constant rate, independent of the core's
// frequency and sleep states.
inline bool TscIsInvariant() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
}
#endif

// A clock for short intervals: the time stamp counter, which takes about 7 ns
// per read, where it is invariant; else NowNs. TickScale converts its ticks to
// nanoseconds.
inline int64_t NowTicks() {
#if defined(__x86_64__)
  static const bool tsc = TscIsInvariant();
  if (tsc) return static_cast<int64_t>(__rdtsc());
#endif
  return NowNs();
}

// Converts readings of NowTicks to the time of NowNs. Construct it before the
// measurement and call End() after it; ToNs is valid for ticks in between.
class TickScale {
 public:
  TickScale() : begin_(Now()) {}
  void End() {
    const Moment end = Now();
    if (end.ticks > begin_.ticks) {
      ns_per_tick_ = static_cast<double>(end.ns - begin_.ns) /
                     static_cast<double>(end.ticks - begin_.ticks);
    }
  }
  int64_t ToNs(int64_t ticks) const {
    return begin_.ns +
           static_cast<int64_t>(static_cast<double>(ticks - begin_.ticks) *
                                ns_per_tick_);
  }

 private:
  struct Moment {
    int64_t ns, ticks;
  };
  // Reads both clocks at the same moment: of five attempts the one that took
  // the least time, so that no interruption lies between the two reads.
  static Moment Now() {
    Moment best = {};
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < 5; ++i) {
      const int64_t before = NowTicks(), ns = NowNs(), after = NowTicks();
      if (after - before >= least) continue;
      least = after - before;
      best = {ns, before + least / 2};
    }
    return best;
  }

  Moment begin_;
  double ns_per_tick_ = 1;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_CLOCK_H_
