// SPDX-License-Identifier: Apache-2.0
// What `trainer bench` measures, over all of its process starts, and its JSON.
#ifndef ONESTEP_TRAINER_MEASURE_BENCH_RUN_H_
#define ONESTEP_TRAINER_MEASURE_BENCH_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "trainer/config.h"
#include "trainer/measure/environment.h"
#include "trainer/measure/statistics.h"
#include "trainer/measure/step_bench.h"

namespace onestep {

struct BenchRun {
  std::vector<BenchRow> rows;  // one a batch
  std::string source;          // of the data
  double density = 0;          // of the data
  Environment environment;

  // Of the rows' peaks the best: that of a quiet moment is everyone's. 0: none.
  double PeakGflops() const;
};

// With fewer there is no verdict.
inline constexpr int64_t kLeastSamples = 30;
inline constexpr int64_t kLeastStarts = 3;
bool EnoughFor(const Samples& samples);

// "faster", "slower", "no measurable difference" where the interval holds 1;
// "too few samples" unless `enough`.
const char* VerdictOf(const Interval& ratio, bool enough);

// The figures of all starts together.
struct WayFigures {
  double median_us = 0, p5_us = 0, p95_us = 0;
  Interval ratio;  // its time / that of fused
  const char* verdict = "";
  double gflops = 0;  // by TextbookFlops
};
WayFigures FiguresOf(const ModelSpec& model, const BenchRow& row,
                     const WayResult& way);

// Adds the rows of another start of the same run. Internal when a way could be
// run in one of them and not in the other.
absl::Status AddStart(const BenchRow& start, std::vector<BenchRow>& rows);

// Of the flags those without which two runs cannot be compared.
nlohmann::ordered_json SettingsToJson(const Config& config);

// The settings, the data, the environment, and for each batch a row: medians
// and ratios by "<way>_<figure>", and "raw": all that was measured, by way and
// process start. Of a row's names those of a way's times alone end in "_us":
// scripts go by that.
nlohmann::ordered_json BenchToJson(const Config& config, const BenchRun& run);

// The rows, the data's description and the CPU, from that. DataLoss "NAME: want
// the output of trainer bench --json ..." for anything else.
absl::StatusOr<BenchRun> BenchFromJson(const nlohmann::ordered_json& json,
                                       const std::string& name);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_BENCH_RUN_H_
