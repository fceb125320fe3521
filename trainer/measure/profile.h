// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_PROFILE_H_
#define ONESTEP_TRAINER_MEASURE_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cpu/dispatch_cost.h"
#include "trainer/config.h"
#include "trainer/data/dataset.h"
#include "trainer/measure/cuda_accounting.h"
#include "trainer/measure/disturbance.h"
#include "trainer/measure/statistics.h"
#include "trainer/measure/trace_file.h"

namespace onestep {

// What the time of a worker's step went into. Every kind but the last is
// measured, for dispatch by calls that compute nothing; kUnaccounted is what is
// left of the undisturbed step.
enum class ProfileKind : uint8_t {
  kOp,           // inside a kernel
  kExchange,     // workers give and take values
  kWait,         // at the barrier, for the other workers
  kForkJoin,     // OpenMP: before the caller's own part runs, and after it
  kDispatch,     // calls made, addresses moved on between steps
  kRun,          // begin and end of a run of many steps
  kUnaccounted,  // may be below 0: by noise, on a GPU where nodes overlap
};
const char* ToString(ProfileKind kind);

struct ProfileRow {
  int worker = 0;
  ProfileKind kind = ProfileKind::kOp;
  StepInfo step;                                  // of a call
  double mean_us = 0, median_us = 0, p95_us = 0;  // per step
  double share = 0;                               // of the undisturbed step
  // 0: not counted.
  double gflops = 0, gbs = 0;
  double roofline = 0;  // share of what the roofs below allow
};

struct Profile {
  std::string name;  // "unfused"
  std::string lowering;
  Device device = Device::kCpu;
  Dispatch dispatch = Dispatch::kOps;  // what auto led to
  int64_t batch = 0;
  int64_t steps = 0;  // that were profiled
  int workers = 1;
  std::vector<ProfileRow> rows;  // worker by worker, in the order of calls
  // Of a step, means over slices of some steps taken in turn: as in a training
  // run, and with a clock read after each call.
  double undisturbed_us = 0, profiled_us = 0;
  double undisturbed_low_us = 0, undisturbed_high_us = 0;  // p5, p95 of slices
  DispatchCost cost;  // its clock_ns is taken off every call
  struct Slice {
    double us = 0;  // undisturbed
    bool kept = true;
  };
  std::vector<Slice> slices;  // in the order taken, all
  // Too few slices were kept for the figures to be sure; `note` says so.
  bool busy = false;
  // The roofs of one worker: multiply-adds in registers, and a copy within as
  // much memory as the step uses. 0: unknown.
  double peak_gflops = 0, bandwidth_gbs = 0;
  std::optional<CudaAccounting> accounting;  // on a GPU
  std::string note;  // what could not be seen, and why; "": nothing
};

struct ProfiledWay {
  std::string name;
  CompileOptions compile;
};

struct ProfileOptions {
  int64_t batch = 32;
  int64_t steps = 2000;  // at least so many ...
  // ... but all ways together no longer, a slice of each aside; 0: any.
  double most_seconds = 0;
  TraceFile* trace = nullptr;  // gets each way's compilation and steps
  int64_t trace_steps = 0;     // as many of each
  // Gets "NAME: why" of a way that cannot be run; null: that is an error.
  std::vector<std::string>* refused = nullptr;
  CoreWaitsFn waits = CoreWaitsNow;  // tells which slices were disturbed
};

// Compiles a step in each of these ways, warms them up, and takes slices of
// some 10 ms, of all ways in turn, each undisturbed and then traced. Slices
// during which something else had a core are left out, and those that took half
// as long again as the median one; where none is left, all count. On a GPU the
// rows are its own times, by events, of calls that the host waits for;
// undisturbed nothing waits.
//
// Cancelled when a signal comes. REQUIRES: options.batch <= data.rows.
absl::StatusOr<std::vector<Profile>> ProfileSteps(
    const ModelSpec& model, const OptimizerSpec& optimizer,
    const std::vector<ProfiledWay>& ways, const Dataset& data,
    const ProfileOptions& options);

// Time of `a` / time of `b`, undisturbed, from slices taken in turn that were
// kept of both; from all, where there are none.
// REQUIRES: profiles of one call of ProfileSteps.
Interval RatioOf(const Profile& a, const Profile& b);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_PROFILE_H_
