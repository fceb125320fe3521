// SPDX-License-Identifier: Apache-2.0
// Times a train step compiled in several ways, each on equal terms:
//   unfused  one oneDNN primitive per textbook op: how a framework runs it
//   loops    our own loop per textbook op, so that what fusion brings is not
//            mistaken for what the library's dispatch costs
//   fused    the fused chain, as --kernels and --disable-pass say
//   single   the same graph in one dispatch: the team program
//   single_sparse  likewise, over the nonzeros of the input
#ifndef ONESTEP_TRAINER_MEASURE_STEP_BENCH_H_
#define ONESTEP_TRAINER_MEASURE_STEP_BENCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trainer/config.h"
#include "trainer/data/dataset.h"
#include "trainer/measure/statistics.h"

namespace onestep {

// What was measured of one way to run the step, by process start.
struct WayResult {
  std::string name;
  std::vector<double> compile_ms;  // from the model to a step that is bound
  // After that, cold: kernels made, pages touched and all.
  std::vector<double> first_step_ms;
  Samples us;  // a step in steady state
  // On a GPU: when the host waits for each step; else empty.
  std::vector<double> synced_us;
  int64_t dispatches = 0;  // per step
  std::string lowering;
};

struct BenchRow {
  int64_t batch = 0;
  std::vector<WayResult> ways;
  std::vector<std::string> refused;  // "single: ..." ways that cannot be run
  // The best of samples between those of the steps; 0 on a GPU.
  double peak_gflops = 0;
  double loss_difference = 0;  // the largest of the check, relative
  int64_t interrupted = 0;     // tries during which the kernel took a core

  // REQUIRES: the way was run.
  const WayResult& Way(absl::string_view name) const;
  // The way that the others are compared with: "fused" on the CPU, "library" on
  // a GPU.
  const WayResult& Baseline() const;
};

// Steps of each way that must have the same losses before anything is timed,
// and how far these may be apart, relative: sums are taken in other orders, and
// tf32 and bf16 have 10 and 7 bits.
inline constexpr int kCheckedSteps = 20;
double LossTolerance(const Config& config);
// The learning rate while timing: weights hardly move in a million steps.
inline constexpr float kTimingRate = 1e-6f;

// The rows to run on: as many as a training run has, less when they are wide,
// and at least `batch`. REQUIRES: the model has widths.
Dataset BenchRows(const ModelSpec& model, int64_t batch);

// One process start's row: compiles the ways, in random order, as the first
// pays for what a process does once; checks their losses; warms them up; takes
// config.samples samples of each by Timing. What a step does, the fetch of its
// rows included, is what it does in a training run. `progress` is told what is
// being done. REQUIRES: batch <= data.rows. Internal when losses differ.
absl::StatusOr<BenchRow> BenchStep(
    const Config& config, const Dataset& data, int64_t batch,
    const std::function<void(const std::string&)>& progress);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_STEP_BENCH_H_
