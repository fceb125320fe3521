// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_BENCH_STARTS_H_
#define ONESTEP_TRAINER_MEASURE_BENCH_STARTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/config.h"
#include "trainer/measure/bench_run.h"

namespace onestep {

// The arguments of one of config.processes starts: those of this process, with
// one batch, its share of the samples, and JSON as output.
std::vector<std::string> StartArguments(const Config& config, int64_t batch);

// Starts this program anew for each batch, config.processes times around, so
// that the starts of a batch lie apart in time. A start that fails ends it with
// that failure; a signal ends it with Cancelled. Leaves the environment to the
// caller.
absl::StatusOr<BenchRun> BenchInStarts(
    const Config& config,
    const std::function<void(const std::string&)>& progress);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_BENCH_STARTS_H_
