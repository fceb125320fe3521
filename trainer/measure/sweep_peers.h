// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_SWEEP_PEERS_H_
#define ONESTEP_TRAINER_MEASURE_SWEEP_PEERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/config.h"
#include "trainer/measure/sweep.h"

namespace onestep {

// The other libraries' epochs at config.batches: from config.peers, a
// compare.json that bench/compare wrote, or bench/compare itself, which is then
// run on the same data, threads, batches and rate, its progress on stderr.
// `rows`: of an epoch of the sweep. `note` says when they were measured, and
// what differs from the sweep: threads, rate, optimizer, loss, activation.
//
// NotFound: there is no such file. DataLoss: it is not what bench/compare
// writes, or has seconds that are not above 0. InvalidArgument: it is of
// another model, CPU or number of rows, or has none of the batches. The
// program's own failure is RunProgram's (subprocess.h).
// REQUIRES: CatchSignals() was called.
absl::StatusOr<std::vector<SweepPeer>> PeersOf(const Config& config,
                                               int64_t rows, std::string& note);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_SWEEP_PEERS_H_
