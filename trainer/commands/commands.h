// SPDX-License-Identifier: Apache-2.0
// The verbs of the program, one file each. Each prints its results to
// `console` and returns why it could not; exit_code.h says what the code of
// that status means to a script.
#ifndef ONESTEP_TRAINER_COMMANDS_COMMANDS_H_
#define ONESTEP_TRAINER_COMMANDS_COMMANDS_H_

#include "absl/status/status.h"
#include "trainer/config.h"
#include "trainer/console.h"

namespace onestep {

// Trains, reports each epoch, and saves to --out.
absl::Status RunTrain(const Config& config, Console& console);

// Accuracy, loss, precision and recall of each class, confusion matrix.
absl::Status RunEval(const Config& config, Console& console);

// One line per image: row, label, probability, and more of both with --top.
absl::Status RunPredict(const Config& config, Console& console);

// The train step before and after the passes.
absl::Status RunGraph(const Config& config, Console& console);

// Time of the train step and of its parts.
absl::Status RunBench(const Config& config, Console& console);

// What this machine and this build can do.
absl::Status RunInfo(const Config& config, Console& console);

// What a GPU's launches, barriers, copies and matmuls cost.
absl::Status RunProbe(const Config& config, Console& console);

// Where the time of one train step goes, call by call.
absl::Status RunProfile(const Config& config, Console& console);

// Batches against ways to run the step: time, and accuracy.
absl::Status RunSweep(const Config& config, Console& console);

// Which flags suit a model and data, from a cost model of this machine.
absl::Status RunAdvise(const Config& config, Console& console);

// Trains many models side by side and finds the best.
absl::Status RunSearch(const Config& config, Console& console);

// Trains word vectors on a text.
absl::Status RunWord2vec(const Config& config, Console& console);

// The words nearest to each of some.
absl::Status RunNearest(const Config& config, Console& console);

// What is to c as b is to a.
absl::Status RunAnalogy(const Config& config, Console& console);

// Word vectors against pairs that people judged, and on analogy questions.
absl::Status RunWord2vecEval(const Config& config, Console& console);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_COMMANDS_COMMANDS_H_
