// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_SWEEP_H_
#define ONESTEP_TRAINER_MEASURE_SWEEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "trainer/config.h"
#include "trainer/load_data.h"

namespace onestep {

// One way to train at one batch.
struct SweepCell {
  std::string approach;  // "cpu single sparse": a column
  Device device = Device::kCpu;
  Dispatch dispatch = Dispatch::kOps;
  InputMode input = InputMode::kDense;
  bool fuse = true;
  int64_t batch = 0;
  std::string refused;  // why it cannot be run; then only `blocks` and what
                        // follows may be known

  // Median of samples of many steps each, the ways in random order.
  double us_per_step = 0;
  // Median of whole epochs, the short last batch, the drawing of the order and
  // the check of the weights included.
  double seconds_per_epoch = 0;
  // FLOPs of the textbook's matmuls over time, as a share of what multiply-adds
  // in registers reach on as many threads. nullopt: on a GPU.
  std::optional<double> mfu;
  // After config.epochs epochs. nullopt: no validation rows, or it diverged.
  std::optional<double> validation_accuracy;

  // Of a GPU, from the geometry of the launches: means over a step's kernels,
  // and what a counter of busy time would claim.
  std::optional<double> blocks, multiprocessors, occupancy, utilisation;
};

// Seconds per epoch of another library, by bench/compare.
struct SweepPeer {
  std::string approach;
  int64_t batch = 0;
  double seconds_per_epoch = 0;
};

// From which batch on the best GPU cell has the shorter epoch, at it and at
// all larger ones that both were measured at. nullopt: from none.
struct Crossover {
  std::string cpu, gpu;  // the best there, else at the largest batch
  std::optional<int64_t> batch;
};

struct Sweep {
  std::string model;
  int64_t rows = 0;  // trained on
  int64_t epochs = 0;
  double lr = 0;  // the same at all batches
  int threads = 0;
  double peak_gflops = 0;  // of so many threads: what mfu is a share of
  std::string data;
  std::string note;          // what went wrong beside cells that were refused
  bool interrupted = false;  // then cells has what was measured until then
  std::vector<SweepCell> cells;  // by batch, then as the columns
  std::vector<SweepPeer> peers;
  std::optional<Crossover> crossover;  // nullopt: CPU or GPU was not measured
};

// Times and trains config.model at each of config.batches in every way that
// config.devices, dispatches and input name, on the train rows of `data`.
// With no dispatches: ops and single on a CPU, graph and single on a GPU. With
// input auto: all dense, and cpu single also over nonzeros, where few enough
// values are not zero. What cannot be run is a cell that says why. Ends soon
// after a signal that CatchSignals (interrupt.h) noted, Cancelled when nothing
// was measured by then.
// REQUIRES: config.model has widths.
absl::StatusOr<Sweep> RunSweepCells(
    const Config& config, const TrainingData& data,
    const std::function<void(const std::string&)>& progress);

// All cells were refused, or there are none.
bool NothingMeasured(const Sweep& sweep);

// Where the best GPU cells overtake the best CPU cells.
std::optional<Crossover> FindCrossover(const std::vector<SweepCell>& cells);

nlohmann::ordered_json ToJson(const Sweep& sweep);
std::string ToText(const Sweep& sweep);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_SWEEP_H_
