// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_BUNDLE_ENGINE_H_
#define ONESTEP_TRAINER_SEARCH_BUNDLE_ENGINE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/config.h"
#include "trainer/data/dataset.h"
#include "trainer/model.h"
#include "trainer/schedule.h"
#include "trainer/search/grouping.h"
#include "trainer/search/trial_engine.h"

namespace onestep {

struct EngineOptions {
  // Whatever `kernels` says, they are our own loops; on the CPU a program is
  // one worker's, whatever dispatch and threads say. `sparse` is set by
  // `input`.
  CompileOptions compile;
  int workers = 1;  // on the CPU; a GPU is driven by the calling thread
  Grouping grouping = Grouping::kAuto;
  InputMode input = InputMode::kAuto;
  Init init = Init::kHe;
  ScheduleKind lr_schedule = ScheduleKind::kConstant;
  int64_t warmup = 0;  // steps
  int64_t epochs = 1;  // of a run, for the schedule
  uint64_t shuffle_seed = 1;
};

// Trains trials in bundles: on the CPU each worker takes blocks of steps of
// one bundle, then of another. A trial's bits depend on itself, the data and
// the options other than workers and grouping.
//
// Trains on rows [0, train_rows) of `data`, which must outlive the engine, and
// validates on [train_rows, rows). RunEpoch is Unimplemented, with the reason,
// where grouping is kVector and many models cannot be in one step.
// REQUIRES: train_rows > 0. Created and called by one thread.
absl::StatusOr<std::unique_ptr<TrialEngine>> CreateBundleEngine(
    const EngineOptions& options, const Dataset& data, int64_t train_rows,
    int64_t rows);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_BUNDLE_ENGINE_H_
