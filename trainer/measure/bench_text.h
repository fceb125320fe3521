// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_BENCH_TEXT_H_
#define ONESTEP_TRAINER_MEASURE_BENCH_TEXT_H_

#include <string>

#include "trainer/config.h"
#include "trainer/measure/bench_run.h"

namespace onestep {

// "1.234 (1.200 to 1.300)"; of samples that are not `enough` for a verdict no
// interval.
std::string ToText(const Interval& ratio, bool enough);

// What was compared, on what, how; a table of the steady state, and one of
// what comes before it.
std::string ToText(const Config& config, const BenchRun& run);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_BENCH_TEXT_H_
