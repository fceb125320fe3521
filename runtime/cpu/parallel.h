// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_PARALLEL_H_
#define ONESTEP_RUNTIME_CPU_PARALLEL_H_

#include <algorithm>
#include <cstdint>

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_acquire(void* addr);
void __tsan_release(void* addr);
}
// Functions with a parallel region are not instrumented: the compiler passes
// the captured variables to the threads before the fork is annotated.
#define ONESTEP_NO_TSAN __attribute__((no_sanitize_thread))
#define ONESTEP_TSAN_ACQUIRE(p) __tsan_acquire(p)
#define ONESTEP_TSAN_RELEASE(p) __tsan_release(p)
#else
#define ONESTEP_NO_TSAN
#define ONESTEP_TSAN_ACQUIRE(p) (void)(p)
#define ONESTEP_TSAN_RELEASE(p) (void)(p)
#endif

namespace onestep {

// Calls fn(begin, end) for contiguous ranges that cover [0, n), in parallel.
// There are at most `threads` ranges; the length of each is a multiple of
// `grain`, except for the last one. The calling thread runs one of them. The
// split depends only on the arguments. The threads are OpenMP's, which oneDNN
// uses too, so that the process has one thread pool.
template <typename Fn>
ONESTEP_NO_TSAN void ParallelFor(int threads, int64_t n, int64_t grain,
                                 const Fn& fn) {
  const int64_t grains = (n + grain - 1) / grain;
  const int64_t ranges = std::min<int64_t>(threads, grains);
  if (ranges <= 1) {
    if (n > 0) fn(int64_t{0}, n);
    return;
  }
  // ThreadSanitizer does not see libgomp's fork and join; annotate them.
  char fork = 0, join = 0;
  ONESTEP_TSAN_RELEASE(&fork);
#pragma omp parallel for schedule(static, 1) num_threads(ranges)
  for (int64_t r = 0; r < ranges; ++r) {
    ONESTEP_TSAN_ACQUIRE(&fork);
    const int64_t begin = grains * r / ranges * grain;
    const int64_t end = std::min(n, grains * (r + 1) / ranges * grain);
    fn(begin, end);
    ONESTEP_TSAN_RELEASE(&join);
  }
  ONESTEP_TSAN_ACQUIRE(&join);
}

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_PARALLEL_H_
