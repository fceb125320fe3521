// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_REPORT_TRAIN_REPORT_H_
#define ONESTEP_TRAINER_REPORT_TRAIN_REPORT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "nlohmann/json.hpp"
#include "trainer/config.h"
#include "trainer/load_data.h"
#include "trainer/measure/profile.h"

namespace onestep {

// What a training run knows when it ends.
struct FinishedRun {
  nlohmann::ordered_json epochs;  // a list, as `train --json` prints it
  nlohmann::ordered_json test;    // accuracy, loss, rows; null: not evaluated
  std::string ended;  // before its time: "diverged: ..."; "": it did not
};

// The ways to take a step that a report profiles: first that of the run, then,
// where they are others, the chain unfused and fused, and on a CPU one
// dispatch, also over nonzeros if the run walks these. Names tell them apart.
// REQUIRES: as TrainReport.
std::vector<ProfiledWay> ReportedWays(const Config& config);

// The content of the page of --report (report/report_page.h). What the run
// itself does not know is measured now, some seconds for MNIST: the profiles of
// ReportedWays, of which "of_run" marks the first; and a sweep of batches that
// trains an epoch each. A way that cannot be run is left out and named in
// "refused". `progress` is told what is being done. REQUIRES: `config` is what
// was run, with nothing left to auto but a GPU's tier.
absl::StatusOr<nlohmann::ordered_json> TrainReport(
    const Config& config, const TrainingData& data, const FinishedRun& run,
    const std::function<void(const std::string&)>& progress);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_REPORT_TRAIN_REPORT_H_
