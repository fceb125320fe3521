// SPDX-License-Identifier: Apache-2.0
// `trainer bench --compare FILE --gate X%`: now against an earlier run.
#ifndef ONESTEP_TRAINER_MEASURE_BENCH_COMPARE_H_
#define ONESTEP_TRAINER_MEASURE_BENCH_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "trainer/config.h"
#include "trainer/measure/bench_run.h"
#include "trainer/measure/statistics.h"

namespace onestep {

// The run that --compare names.
struct EarlierRun {
  std::string file;
  BenchRun run;
};

// Reads it before anything is measured. NotFound, DataLoss; InvalidArgument
// when a setting or the CPU is not as now, when it has none of config.batches,
// and when with --gate it lacks one of them or has, as now, too few samples for
// a verdict.
absl::StatusOr<EarlierRun> ReadEarlierRun(const Config& config);

struct ComparedWay {
  int64_t batch = 0;
  std::string name;
  Interval raw;         // time now / time then
  Interval ratio;       // likewise at equal FMA peak
  bool enough = false;  // samples for a verdict
  const char* verdict = "";
};

struct BenchComparison {
  std::string file;
  double gate = 0;                     // 0: none
  double peak_then = 0, peak_now = 0;  // GFLOP/s; 0: not known, as on a GPU
  std::vector<ComparedWay> ways;
  std::vector<std::string> missing;  // "batch 32 single": not run now
  std::vector<std::string> added;    // likewise, or "batch 64": not run then
};

// The batches that both have. The runs are of different moments, in which the
// clock may differ. So a way's times are compared in units of what its run's
// FMA peak took: the raw ratio times peak_now / peak_then, where both peaks are
// known. That is right for what the clock bounds, and not for what memory
// does; both ratios are reported. InvalidArgument when the data
// are not as dense.
absl::StatusOr<BenchComparison> CompareBench(const EarlierRun& then,
                                             const BenchRun& now, double gate);

nlohmann::ordered_json ToJson(const BenchComparison& comparison);
std::string ToText(const BenchComparison& comparison);

// Aborted when, with a gate, the lower limit of a way's ratio is above
// 1 + gate, or what was run in one of the two was not in the other: what is
// surely slower fails, what may be is let pass, what cannot be told is not.
absl::Status GateStatus(const BenchComparison& comparison);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_BENCH_COMPARE_H_
