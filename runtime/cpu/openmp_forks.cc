// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/openmp_forks.h"

#include <dlfcn.h>
#include <omp.h>

#include "runtime/base/status.h"
#include "runtime/cpu/parallel.h"

namespace onestep {
namespace {

using Body = void (*)(void*);
using ParallelFn = void (*)(Body, void*, unsigned, unsigned);

ParallelFn RealParallel() {
  static const auto real =
      reinterpret_cast<ParallelFn>(dlsym(RTLD_NEXT, "GOMP_parallel"));
  CHECK(real != nullptr);
  return real;
}

// The output of this thread's recorder; null when it has none.
thread_local std::vector<ForkStamps>* recorded = nullptr;
thread_local int64_t recorded_count = 0;

struct Region {
  Body body;
  void* data;
  // Thread 0 writes the stamps while the other threads read the fields above,
  // so that they are in another cache line.
  alignas(64) ForkStamps stamps;
};

// The body that the threads of a recorded region run. It is not instrumented,
// because ThreadSanitizer sees neither libgomp's fork nor its join.
ONESTEP_NO_TSAN void RunBody(void* data) {
  Region* const region = static_cast<Region*>(data);
  if (omp_get_thread_num() != 0) return region->body(region->data);
  region->stamps.body_begin = NowTicks();
  region->body(region->data);
  region->stamps.body_end = NowTicks();
}

}  // namespace

absl::Status ForkRecorder::Available() {
#if defined(__clang__)
  return absl::UnavailableError(
      "forks and joins are not seen: want GNU's OpenMP runtime");
#else
  return absl::OkStatus();
#endif
}

ForkRecorder::ForkRecorder(std::vector<ForkStamps>& forks) {
  CHECK(recorded == nullptr);
  recorded = &forks;
  recorded_count = 0;
}

ForkRecorder::~ForkRecorder() { recorded = nullptr; }

int64_t ForkRecorder::count() const { return recorded_count; }

}  // namespace onestep

// The dynamic linker resolves calls to this definition before libgomp's, both
// from this program and from its libraries.
extern "C" ONESTEP_NO_TSAN void GOMP_parallel(void (*body)(void*), void* data,
                                              unsigned threads,
                                              unsigned flags) {
  using onestep::recorded;
  using onestep::recorded_count;
  if (recorded == nullptr || omp_get_level() != 0) {
    return onestep::RealParallel()(body, data, threads, flags);
  }
  onestep::Region region = {body, data, {}};
  region.stamps.begin = onestep::NowTicks();
  onestep::RealParallel()(&onestep::RunBody, &region, threads, flags);
  region.stamps.end = onestep::NowTicks();
  if (recorded_count < std::ssize(*recorded)) {
    (*recorded)[recorded_count] = region.stamps;
  }
  ++recorded_count;
}
