// SPDX-License-Identifier: Apache-2.0
// How the trials of one kind are run, chosen by timing.
#ifndef ONESTEP_TRAINER_SEARCH_WAY_H_
#define ONESTEP_TRAINER_SEARCH_WAY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cpu/team.h"
#include "trainer/search/bundle.h"
#include "trainer/search/program_pool.h"

namespace onestep {

struct Way {
  bool vector = false;  // many models in one step; else each by itself
  bool sparse = false;  // the first layer's products walk nonzeros
};

// Trials of each bundle. Vector: sizes that differ by at most one, none above
// `most`, and as many bundles as a multiple of the workers where that leaves
// two trials to each. REQUIRES: trials >= 1.
std::vector<int64_t> BundleSizes(const Way& way, int64_t trials, int workers,
                                 int64_t most);

struct WayChoice {
  Way way;
  // Microseconds of all workers together for one step of one model, with the
  // input of `way`; 0: not measured.
  double vector_us = 0, loop_us = 0;
  std::vector<std::string> refused;  // "vector: ..."
};

// What ChooseWay times with.
struct WayTiming {
  ProgramPool& pool;
  Team& team;
  const RowPlan& plan;
  int64_t most = 32;      // see BundleSizes
  double round_us = 6e3;  // of one way, of several rounds; 0: not to be timed
  bool alone = true;      // no other kind keeps workers busy meanwhile
};

// What timing so many ways takes.
double TimingUs(double round_us, int64_t ways);

// Which is likely the faster way on a CPU to run models with so many weights:
// vector, where those of a whole vector leave half of the L2 cache free.
bool LikelyVector(int64_t weight_bytes);

// The fastest of `ways` for these trials of one kind, on copies of weights;
// where there is one alone or nothing is to be timed, the first that can be
// compiled. Those that cannot are refused; Unimplemented when all are.
// REQUIRES: ways and trials are not empty.
absl::StatusOr<WayChoice> ChooseWay(const WayTiming& timing,
                                    const std::vector<Way>& ways,
                                    const std::vector<TrialState*>& trials);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_WAY_H_
