// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_COST_MODEL_H_
#define ONESTEP_TRAINER_MEASURE_COST_MODEL_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "nlohmann/json.hpp"
#include "trainer/measure/call_costs.h"

namespace onestep {

// How far apart cores were seen (core_latency.h); 0: there is one. A virtual
// machine may move its cores, and waits for each other then cost other times.
struct CoreDistance {
  double least_ns = 0, most_ns = 0;

  void Add(double ns);
  // "" where cores as far as `now_ns` are about as they were.
  std::string ChangeText(double now_ns) const;
};

// What calls cost on one machine, as measured by Calibrate (calibrate.h).
struct MachineCosts {
  CallCosts calls;
  // Of one thread: multiply-adds in registers, and a copy of so many bytes.
  double peak_gflops = 0;
  struct Copy {
    double bytes = 0, gbs = 0;  // read and written
  };
  std::vector<Copy> copies;  // ascending bytes
  CoreDistance cores;        // while calls were timed
  double seconds = 0;        // that measuring took
  bool busy = false;         // something else had a core whenever some way ran

  // Of a working set of so many bytes: the nearest copy's rate.
  double Bandwidth(double bytes) const;
};

// Without `busy`, for such are not kept.
nlohmann::ordered_json ToJson(const MachineCosts& costs);
// nullopt for what ToJson did not write, all above 0.
std::optional<MachineCosts> MachineCostsOf(const nlohmann::ordered_json& json);

// The expected time of one train step, and what it is made of: each call is
// its fixed cost, a launch, and the rest, which counts as compute or memory by
// whichever of the two the call is bound by (roofline). On a CPU the launches
// hold forks, joins, and what workers wait for and give each other.
struct StepCost {
  double us = 0;
  double compute_us = 0, memory_us = 0, launch_us = 0, transfer_us = 0;
  // Kernels that were never measured and priced as a copy of their bytes.
  std::vector<std::string> unknown;
};

// Of a step compiled for the CPU and so many threads, told from what its
// executable has to call: nothing is run. `table_bytes`: of the rows that the
// batch is gathered from.
StepCost EstimateStep(const MachineCosts& costs, const Compiled& compiled,
                      int threads, double table_bytes);

// ---- the parts, for calibration and tests -----------------------------------

// How steps are told apart by their speed.
struct StepContext {
  int threads = 1;         // a chain's; of a team's worker 1
  int workers = 1;         // a team's
  double table_bytes = 0;  // rows lie in so many, when they are first read
  bool fetched = false;    // the rows were asked for in the step before
};
// REQUIRES: info is no wait.
KernelCall CallOf(const StepInfo& info, const StepContext& context);
// Of a wait after so many us of work.
KernelCall WaitAfter(double us, int workers);
StepContext ContextOf(const Compiled& compiled, int threads,
                      double table_bytes);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_COST_MODEL_H_
