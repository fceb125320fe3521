// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_CALIBRATE_H_
#define ONESTEP_TRAINER_MEASURE_CALIBRATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/config.h"
#include "trainer/measure/cost_model.h"
#include "trainer/measure/disturbance.h"

namespace onestep {

// A model and batch whose step is run to learn what its calls cost.
struct CalibrationStep {
  std::vector<int64_t> widths;
  int64_t batch = 1;
};
// From a few FLOPs to a few gigaFLOP a step; none is a size that anyone would
// ask for, so that what is foretold was not measured.
const std::vector<CalibrationStep>& CalibrationSteps();

// Runs the calibration steps on made rows in every way that a step can be run
// on the CPU, traced, with the activation, loss and optimizer of `config`, and
// keeps the time of every call. `waits` tells which times were disturbed; they
// are taken again, up to three times. Some 7 s on 2 cores.
absl::StatusOr<MachineCosts> Calibrate(
    const Config& config,
    const std::function<void(const std::string&)>& progress,
    const CoreWaitsFn& waits = CoreWaitsNow,
    const std::vector<CalibrationStep>& steps = CalibrationSteps());

// How far apart the cores of config.compile.threads workers are at the moment;
// 0: it has one.
double CoreNsNow(const Config& config);

inline constexpr char kCostsFile[] = "costs.json";

// What an earlier run measured with the same BuildAndCpu (machine_info.h) and
// kinds of calls, kept in kCostsFile (cache.h), else Calibrate's, which is then
// kept unless the machine was busy. Deleting the file has all measured anew.
absl::StatusOr<MachineCosts> KeptCosts(
    const Config& config,
    const std::function<void(const std::string&)>& progress,
    const CoreWaitsFn& waits = CoreWaitsNow,
    const std::vector<CalibrationStep>& steps = CalibrationSteps());

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_CALIBRATE_H_
