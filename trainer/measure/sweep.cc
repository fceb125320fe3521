// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/sweep.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/autotune.h"
#include "trainer/data/nonzeros.h"
#include "trainer/evaluate.h"
#include "trainer/interrupt.h"
#include "trainer/launch_costs.h"
#include "trainer/measure/peak.h"
#include "trainer/measure/statistics.h"
#include "trainer/measure/step_session.h"
#include "trainer/measure/timing.h"
#include "trainer/train_loop.h"

namespace onestep {
namespace {

using Notify = std::function<void(const std::string&)>;

// Of each way at a batch.
constexpr int kSamples = 9;
// Epochs that are timed at least; the first finds the caches cold.
constexpr int64_t kTimedEpochs = 3;

// A way of training, at every batch.
struct Column {
  std::string approach;
  InputMode input;
  CompileOptions compile;
};

std::vector<Column> ColumnsOf(const Config& config, const Dataset& data) {
  const int64_t nonzeros = std::max<int64_t>(1, CountNonzeros(data));
  const bool few = Density(data) < kSparseDensity && config.compile.fuse;
  std::vector<Column> columns;
  for (const Device device : config.devices) {
    const bool gpu = device == Device::kGpu;
    std::vector<Dispatch> dispatches = config.dispatches;
    if (dispatches.empty()) {
      dispatches = {gpu ? Dispatch::kGraph : Dispatch::kOps, Dispatch::kSingle};
    }
    for (const Dispatch dispatch : dispatches) {
      CompileOptions compile = config.compile;
      compile.device = device;
      compile.dispatch = dispatch;
      compile.sparse = {};
      if (gpu) UseKeptProbe(compile.cuda);
      const std::string name =
          absl::StrCat(NameOf(device), " ", NameOf(dispatch));
      if (gpu || config.input != InputMode::kSparse) {
        columns.push_back({name, InputMode::kDense, compile});
      }
      if (gpu || config.input == InputMode::kDense) continue;
      if (config.input == InputMode::kSparse ||
          (few && dispatch == Dispatch::kSingle)) {
        compile.sparse = {nonzeros};
        columns.push_back({name + " sparse", InputMode::kSparse, compile});
      }
    }
  }
  return columns;
}

void FillOccupancy(const Compiled& compiled, SweepCell& cell) {
  if (!compiled.cuda) return;
  const CudaOccupancyReport& report = compiled.cuda->occupancy;
  cell.blocks = report.mean.blocks;
  cell.multiprocessors = report.mean.multiprocessors_busy;
  cell.occupancy = report.mean.occupancy;
  cell.utilisation = report.utilisation_counter;
}

class Sweeper {
 public:
  Sweeper(const Config& config, const TrainingData& data,
          const Notify& progress)
      : config_(config),
        data_(data),
        progress_(progress),
        peak_(config.compile.threads) {}

  absl::StatusOr<Sweep> Run();

 private:
  struct Trial {
    SweepCell* cell;
    std::unique_ptr<StepSession> session;
  };

  absl::Status RunBatch(int64_t batch, const std::vector<Column>& columns);
  // Of a GPU that is not there, from a plan; nothing when there is none.
  void PlanOccupancy(const Column& column, SweepCell& cell) const;
  absl::Status TimeSteps(const std::vector<Trial>& trials);
  absl::Status Train(const Column& column, SweepCell& cell);
  absl::Status Evaluate(const Column& column, TrainLoop& loop,
                        SweepCell& cell) const;
  void FillMfu();

  const Config& config_;
  const TrainingData& data_;
  const Notify& progress_;
  PeakProbe peak_;
  Sweep sweep_;
};

absl::Status Sweeper::TimeSteps(const std::vector<Trial>& trials) {
  std::vector<RunSteps> ways;
  for (const Trial& trial : trials) {
    ways.push_back(StepsOf(*trial.session));
  }
  Timing timing(ways, config_.seed);
  RETURN_IF_ERROR(timing.WarmUp());
  for (int i = 0; i < kSamples; ++i) {
    RETURN_IF_ERROR(timing.Sample());
    peak_.Sample();
  }
  for (size_t t = 0; t < trials.size(); ++t) {
    trials[t].cell->us_per_step = Median(timing.us(t));
  }
  return absl::OkStatus();
}

absl::Status Sweeper::Evaluate(const Column& column, TrainLoop& loop,
                               SweepCell& cell) const {
  if (data_.split.validation_rows == 0) return absl::OkStatus();
  CompileOptions compile = column.compile;
  if (compile.dispatch == Dispatch::kSingle) {
    compile.dispatch =
        compile.device == Device::kGpu ? Dispatch::kGraph : Dispatch::kOps;
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Evaluator> evaluator,
      Evaluator::Create(config_.model, compile, data_.train, loop.params(),
                        {data_.split.train_rows, data_.split.validation_rows}));
  ASSIGN_OR_RETURN(const EvalResult result, evaluator->Run());
  cell.validation_accuracy = result.accuracy;
  return absl::OkStatus();
}

// Trains config.epochs, for the accuracy, and on until enough are timed.
absl::Status Sweeper::Train(const Column& column, SweepCell& cell) {
  Config config = config_;
  config.compile = column.compile;
  config.compile.dump_dir.clear();
  config.batch = cell.batch;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainLoop> loop,
      TrainLoop::Create(config, data_.train, data_.split.train_rows));
  std::vector<double> seconds;
  for (int64_t epoch = 1; epoch <= std::max(config_.epochs, kTimedEpochs);
       ++epoch) {
    const absl::StatusOr<EpochResult> result = loop->RunEpoch(
        epoch, [](int64_t, double) { return PendingSignal() == 0; });
    if (absl::IsOutOfRange(result.status())) {
      absl::StrAppend(&sweep_.note, sweep_.note.empty() ? "" : "; ",
                      cell.approach, ", batch ", cell.batch, ": ",
                      std::string(result.status().message()));
      if (epoch <= config_.epochs) cell.validation_accuracy.reset();
      break;
    }
    RETURN_IF_ERROR(result.status());
    seconds.push_back(result->seconds);
    if (epoch == config_.epochs) RETURN_IF_ERROR(Evaluate(column, *loop, cell));
  }
  cell.seconds_per_epoch =
      seconds.empty() ? cell.us_per_step * 1e-6 * loop->steps_per_epoch()
                      : Median(seconds);
  return absl::OkStatus();
}

void Sweeper::PlanOccupancy(const Column& column, SweepCell& cell) const {
  CompileOptions compile = column.compile;
  if (compile.device != Device::kGpu) return;
  compile.cuda.plan_only = true;
  absl::StatusOr<Graph> graph = BuildTrainStep(config_.model, config_.optimizer,
                                               data_.train.rows, cell.batch);
  if (!graph.ok()) return;
  const absl::StatusOr<Compiled> compiled = Compile(*std::move(graph), compile);
  if (!compiled.ok()) {
    absl::StrAppend(&cell.refused, "; ",
                    std::string(compiled.status().message()));
    return;
  }
  FillOccupancy(*compiled, cell);
  absl::StrAppend(&cell.refused, "; blocks as on ", compiled->cuda->device);
}

absl::Status Sweeper::RunBatch(int64_t batch,
                               const std::vector<Column>& columns) {
  const size_t first = sweep_.cells.size();
  std::vector<Trial> trials;
  for (const Column& column : columns) {
    SweepCell cell;
    cell.approach = column.approach;
    cell.device = column.compile.device;
    cell.dispatch = column.compile.dispatch;
    cell.input = column.input;
    cell.fuse = column.compile.fuse;
    cell.batch = batch;
    sweep_.cells.push_back(std::move(cell));
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    SweepCell& cell = sweep_.cells[first + c];
    if (batch > data_.split.train_rows) {
      cell.refused = absl::StrCat("want at most ", data_.split.train_rows,
                                  " rows, the train rows");
      continue;
    }
    progress_(absl::StrCat("batch ", batch, ": compile ", cell.approach));
    absl::StatusOr<std::unique_ptr<StepSession>> session =
        StepSession::Create(config_.model, config_.optimizer,
                            columns[c].compile, data_.train, batch);
    if (IsRefusal(session.status())) {
      cell.refused = std::string(session.status().message());
      PlanOccupancy(columns[c], cell);
      continue;
    }
    RETURN_IF_ERROR(session.status());
    FillOccupancy((*session)->compiled(), cell);
    trials.push_back({&cell, *std::move(session)});
  }
  progress_(absl::StrCat("batch ", batch, ": time steps"));
  RETURN_IF_ERROR(TimeSteps(trials));
  trials.clear();  // a GPU's memory is wanted for the next
  for (size_t c = 0; c < columns.size(); ++c) {
    SweepCell& cell = sweep_.cells[first + c];
    if (!cell.refused.empty()) continue;
    progress_(absl::StrCat("batch ", batch, ": train ", cell.approach));
    RETURN_IF_ERROR(Train(columns[c], cell));
  }
  return absl::OkStatus();
}

void Sweeper::FillMfu() {
  sweep_.peak_gflops = peak_.best_gflops();
  for (SweepCell& cell : sweep_.cells) {
    if (cell.device == Device::kGpu || !cell.refused.empty()) continue;
    cell.mfu = TextbookFlops(config_.model, cell.batch) / cell.us_per_step *
               1e-3 / peak_.best_gflops();
  }
}

absl::StatusOr<Sweep> Sweeper::Run() {
  sweep_.model = config_.model.ToString();
  sweep_.rows = data_.split.train_rows;
  sweep_.epochs = config_.epochs;
  sweep_.lr = config_.lr;
  sweep_.threads = config_.compile.threads;
  sweep_.data = data_.train.source;
  sweep_.note = TakeTurnsNote(sweep_.threads);
  const std::vector<Column> columns = ColumnsOf(config_, data_.train);
  for (const int64_t batch : config_.batches) {
    const absl::Status status = PendingSignal() == 0
                                    ? RunBatch(batch, columns)
                                    : absl::CancelledError("stopped");
    if (absl::IsCancelled(status)) {
      sweep_.interrupted = true;
      std::erase_if(sweep_.cells, [](const SweepCell& cell) {
        return cell.refused.empty() && cell.seconds_per_epoch == 0;
      });
      if (NothingMeasured(sweep_)) return status;
      break;
    }
    RETURN_IF_ERROR(status);
  }
  FillMfu();
  sweep_.crossover = FindCrossover(sweep_.cells);
  return std::move(sweep_);
}

}  // namespace

absl::StatusOr<Sweep> RunSweepCells(const Config& config,
                                    const TrainingData& data,
                                    const Notify& progress) {
  return Sweeper(config, data, progress).Run();
}

bool NothingMeasured(const Sweep& sweep) {
  return std::none_of(
      sweep.cells.begin(), sweep.cells.end(),
      [](const SweepCell& cell) { return cell.refused.empty(); });
}

std::optional<Crossover> FindCrossover(const std::vector<SweepCell>& cells) {
  struct Best {
    const SweepCell* cpu = nullptr;
    const SweepCell* gpu = nullptr;
  };
  std::map<int64_t, Best> by_batch;
  for (const SweepCell& cell : cells) {
    if (!cell.refused.empty()) continue;
    Best& best = by_batch[cell.batch];
    const SweepCell*& of_device =
        cell.device == Device::kGpu ? best.gpu : best.cpu;
    if (of_device == nullptr ||
        cell.seconds_per_epoch < of_device->seconds_per_epoch) {
      of_device = &cell;
    }
  }
  std::erase_if(by_batch, [](const auto& entry) {
    return entry.second.cpu == nullptr || entry.second.gpu == nullptr;
  });
  if (by_batch.empty()) return std::nullopt;
  const Best& last = by_batch.rbegin()->second;
  Crossover crossover = {last.cpu->approach, last.gpu->approach, std::nullopt};
  for (auto it = by_batch.rbegin(); it != by_batch.rend(); ++it) {
    const auto& [cpu, gpu] = it->second;
    if (gpu->seconds_per_epoch >= cpu->seconds_per_epoch) break;
    crossover = {cpu->approach, gpu->approach, it->first};
  }
  return crossover;
}

}  // namespace onestep
