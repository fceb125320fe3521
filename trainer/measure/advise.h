// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_ADVISE_H_
#define ONESTEP_TRAINER_MEASURE_ADVISE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "trainer/config.h"
#include "trainer/measure/cost_model.h"
#include "trainer/measure/disturbance.h"
#include "trainer/measure/memory_use.h"

namespace onestep {

// One way to run the step, and what it is expected to take.
struct AdvisedWay {
  Device device = Device::kCpu;
  Dispatch dispatch = Dispatch::kOps;
  int threads = 1;
  InputMode input = InputMode::kDense;
  int64_t batch = 0;
  StepCost cost;
  double epoch_seconds = 0;
  std::optional<double> measured_us;  // by --check, a step

  // "--batch 32 --dispatch single --threads 2 --input sparse"; of a GPU
  // "--batch 32 --device gpu --dispatch graph".
  std::string Flags() const;
  // Of the estimate, relative to what was measured.
  double Error() const { return cost.us / *measured_us - 1; }
};

struct Advice {
  // At the advised batch, the fastest first: the first is advised.
  std::vector<AdvisedWay> ways;
  // The fastest way at each batch that was considered, ascending.
  std::vector<AdvisedWay> batches;
  std::vector<std::string> refused;  // "--dispatch single ...: why not"
  std::string gpu;                   // why a GPU was not considered; "": it was
  // What a GPU that is not here, but was probed, is expected to take.
  std::vector<AdvisedWay> elsewhere;
  MemoryUse memory;  // of a run as advised
  MachineCosts costs;
  double core_ns = 0;  // CoreNsNow
  // Something else had a core whenever some way was checked.
  bool check_busy = false;
};

// An epoch this much longer than the shortest is worth a smaller batch, which
// learns more from each row.
inline constexpr double kBatchTolerance = 0.1;

// Foretells every way to train config.model on config.rows rows on this
// machine: dispatch ops and single, threads, dense and sparse input, and a GPU
// of which a probe was kept (gpu_cost.h), at the
// batch that was given or, without one, at each of kAdvisedBatches, of which
// the smallest is taken whose epoch is within kBatchTolerance of the shortest.
// What calls cost comes from KeptCosts; nothing of the model itself is run
// unless config.check: then the ways at the advised batch are.
//
// `waits` tells which times were disturbed.
// InvalidArgument: the batch is larger than the rows.
absl::StatusOr<Advice> Advise(
    const Config& config, bool batch_given,
    const std::function<void(const std::string&)>& progress,
    const CoreWaitsFn& waits = CoreWaitsNow);

nlohmann::ordered_json ToJson(const Config& config, const Advice& advice);
std::string ToText(const Config& config, const Advice& advice);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_ADVISE_H_
