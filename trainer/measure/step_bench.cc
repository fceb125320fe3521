// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/step_bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/data/nonzeros.h"
#include "trainer/data/random.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/peak.h"
#include "trainer/measure/rows_to_time.h"
#include "trainer/measure/step_session.h"
#include "trainer/measure/timing.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kTableBytes = int64_t{64} << 20;

// Losses below this are as good as 0: what their share is says nothing.
constexpr double kLossFloor = 1e-6;

// Of the peak before the first sample, besides one between any two.
constexpr int kFirstPeakSamples = 30;

// Steps that are waited for one by one, on a GPU.
constexpr int kSyncedSteps = 200;

// The ways that the others are compared with, on the CPU and on a GPU.
constexpr char kFusedWay[] = "fused";
constexpr char kLibraryWay[] = "library";

struct WayOptions {
  const char* name;
  CompileOptions compile;
};

// The first is how the textbook has it.
std::vector<WayOptions> WaysOf(const Config& config, const Dataset& data) {
  CompileOptions unfused = config.compile;
  unfused.dump_dir.clear();
  CompileOptions fused = unfused;
  if (fused.dispatch != Dispatch::kGraph) fused.dispatch = Dispatch::kOps;
  unfused.dispatch = Dispatch::kOps;
  unfused.fuse = false;
  unfused.kernels = Kernels::kOnednn;
  CompileOptions loops = unfused;
  loops.kernels = Kernels::kLoops;
  CompileOptions single = fused;
  single.dispatch = Dispatch::kSingle;
  CompileOptions sparse = single;
  sparse.sparse = {CountNonzeros(data)};
  return {{"unfused", unfused},
          {"loops", loops},
          {kFusedWay, fused},
          {"single", single},
          {"single_sparse", sparse}};
}

// Every tier, or tier library and the one asked for, in every way to launch it.
std::vector<WayOptions> GpuWaysOf(const Config& config) {
  CompileOptions base = config.compile;
  base.dump_dir.clear();
  const auto way = [&base](Dispatch dispatch, bool fuse, CudaTier tier,
                           CudaFirstLayer first_layer) {
    CompileOptions options = base;
    options.dispatch = dispatch;
    options.fuse = fuse;
    options.cuda.tier = tier;
    options.cuda.first_layer = first_layer;
    return options;
  };
  constexpr auto kFma = CudaFirstLayer::kFma;
  constexpr auto kSplit = CudaFirstLayer::kSplit;
  std::vector<WayOptions> ways = {
      {"unfused_ops", way(Dispatch::kOps, false, CudaTier::kLibrary, kFma)},
      {"unfused", way(Dispatch::kGraph, false, CudaTier::kLibrary, kFma)},
      {"library_ops", way(Dispatch::kOps, true, CudaTier::kLibrary, kFma)},
      {kLibraryWay, way(Dispatch::kGraph, true, CudaTier::kLibrary, kFma)},
      {"fused_ops", way(Dispatch::kOps, true, CudaTier::kFused, kFma)},
      {"fused", way(Dispatch::kGraph, true, CudaTier::kFused, kFma)},
      {"persistent",
       way(Dispatch::kSingle, true, CudaTier::kPersistent, kFma)}};
  if (base.cuda.math == MathMode::kFp32) {
    ways.insert(
        ways.end(),
        {{"fused_split", way(Dispatch::kGraph, true, CudaTier::kFused, kSplit)},
         {"persistent_split",
          way(Dispatch::kSingle, true, CudaTier::kPersistent, kSplit)}});
  }
  const CudaTier only = base.cuda.tier;
  if (only != CudaTier::kAuto) {
    std::erase_if(ways, [&](const WayOptions& made) {
      const CudaTier tier = made.compile.cuda.tier;
      return tier != CudaTier::kLibrary && tier != only;
    });
  }
  return ways;
}

double MillisSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

class StepBench {
 public:
  StepBench(const Config& config, const Dataset& data, int64_t batch)
      : config_(config), data_(data) {
    row_.batch = batch;
  }

  // Ways that cannot be run are noted as refused.
  absl::Status Compile(Random& random);
  // Times the first step of each, and notes the largest relative difference of
  // two losses.
  absl::Status CheckLosses();
  // `timing`: of runs().
  absl::Status WarmUp(Timing& timing);
  // The host waits for each step.
  absl::Status TimeSynced();
  std::vector<RunSteps> runs() const;
  BenchRow Row(const Timing& timing, double peak_gflops);

 private:
  absl::StatusOr<std::unique_ptr<StepSession>> CompileWay(
      const WayOptions& way, double& compile_ms) const;

  const Config& config_;
  const Dataset& data_;
  BenchRow row_;
  std::vector<std::unique_ptr<StepSession>> sessions_;  // one of each way
};

absl::StatusOr<std::unique_ptr<StepSession>> StepBench::CompileWay(
    const WayOptions& way, double& compile_ms) const {
  const Clock::time_point start = Clock::now();
  auto session = StepSession::Create(config_.model, config_.optimizer,
                                     way.compile, data_, row_.batch);
  compile_ms = MillisSince(start);
  return session;
}

absl::Status StepBench::Compile(Random& random) {
  const bool gpu = config_.compile.device == Device::kGpu;
  const std::vector<WayOptions> ways =
      gpu ? GpuWaysOf(config_) : WaysOf(config_, data_);
  std::vector<std::unique_ptr<StepSession>> sessions(ways.size());
  std::vector<double> compile_ms(ways.size());
  std::vector<absl::Status> statuses(ways.size());
  for (const int32_t i : random.Permutation(std::ssize(ways))) {
    auto session = CompileWay(ways[i], compile_ms[i]);
    statuses[i] = session.status();
    if (session.ok()) sessions[i] = *std::move(session);
  }
  for (size_t i = 0; i < ways.size(); ++i) {
    const CompileOptions& compile = ways[i].compile;
    const bool needed = gpu ? compile.cuda.tier == CudaTier::kLibrary
                            : compile.dispatch != Dispatch::kSingle;
    if (IsRefusal(statuses[i]) && !needed) {
      row_.refused.push_back(
          absl::StrCat(ways[i].name, ": ", statuses[i].message()));
      continue;
    }
    RETURN_IF_ERROR(statuses[i]);
    WayResult& way = row_.ways.emplace_back();
    way.name = ways[i].name;
    way.compile_ms = {compile_ms[i]};
    way.dispatches = sessions[i]->executable().dispatches();
    way.lowering = sessions[i]->executable().lowering();
    sessions_.push_back(std::move(sessions[i]));
  }
  return absl::OkStatus();
}

absl::Status StepBench::CheckLosses() {
  const double tolerance = LossTolerance(config_);
  for (const auto& session : sessions_) {
    RETURN_IF_ERROR(
        session->Reset(OptimizerOf(config_.optimizer.kind).check_rate));
  }
  for (int step = 1; step <= kCheckedSteps; ++step) {
    for (size_t i = 0; i < sessions_.size(); ++i) {
      const Clock::time_point start = Clock::now();
      RETURN_IF_ERROR(sessions_[i]->Run(1));
      if (step == 1) row_.ways[i].first_step_ms = {MillisSince(start)};
    }
    const double want = sessions_[0]->loss();
    for (size_t i = 0; i < sessions_.size(); ++i) {
      const double got = sessions_[i]->loss();
      const double difference =
          std::abs(got - want) / std::max(std::abs(want), kLossFloor);
      row_.loss_difference = std::max(row_.loss_difference, difference);
      // Written so that nan is refused.
      if (difference <= tolerance) continue;
      return absl::InternalError(
          absl::StrCat("bench: step ", step, ": want the ", row_.ways[0].name,
                       " loss ", want, " within a share of ", tolerance,
                       ", got the ", row_.ways[i].name, " loss ", got));
    }
  }
  return absl::OkStatus();
}

absl::Status StepBench::WarmUp(Timing& timing) {
  for (const auto& session : sessions_) {
    RETURN_IF_ERROR(session->Reset(kTimingRate));
  }
  return timing.WarmUp();
}

absl::Status StepBench::TimeSynced() {
  for (size_t i = 0; i < sessions_.size(); ++i) {
    std::vector<double> us;
    for (int step = 0; step < kSyncedSteps; ++step) {
      const Clock::time_point start = Clock::now();
      RETURN_IF_ERROR(sessions_[i]->Run(1));
      us.push_back(1e3 * MillisSince(start));
    }
    row_.ways[i].synced_us = {Median(us)};
  }
  return absl::OkStatus();
}

std::vector<RunSteps> StepBench::runs() const {
  std::vector<RunSteps> runs;
  for (const auto& session : sessions_) {
    runs.push_back([&session](int64_t steps) { return session->Run(steps); });
  }
  return runs;
}

BenchRow StepBench::Row(const Timing& timing, double peak_gflops) {
  for (size_t i = 0; i < row_.ways.size(); ++i) {
    row_.ways[i].us = {timing.us(i)};
  }
  row_.peak_gflops = peak_gflops;
  row_.interrupted = timing.interrupted();
  return row_;
}

}  // namespace

double LossTolerance(const Config& config) {
  const bool fp32 = config.compile.device == Device::kCpu ||
                    config.compile.cuda.math == MathMode::kFp32;
  return fp32 ? 1e-3 : 5e-2;
}

const WayResult& BenchRow::Way(absl::string_view name) const {
  const auto it =
      std::find_if(ways.begin(), ways.end(),
                   [&](const WayResult& way) { return way.name == name; });
  CHECK(it != ways.end());
  return *it;
}

const WayResult& BenchRow::Baseline() const {
  for (const WayResult& way : ways) {
    if (way.name == kLibraryWay) return way;
  }
  return Way(kFusedWay);
}

Dataset BenchRows(const ModelSpec& model, int64_t batch) {
  const int64_t fit = std::min(kTimedRows, kTableBytes / model.features());
  return RandomRows(std::max(fit, batch), model.features(), model.classes(),
                    /*seed=*/1);
}

absl::StatusOr<BenchRow> BenchStep(
    const Config& config, const Dataset& data, int64_t batch,
    const std::function<void(const std::string&)>& progress) {
  // Each process has an order of its own.
  Random random(static_cast<uint64_t>(getpid()));
  StepBench bench(config, data, batch);
  progress("compile and compare losses");
  RETURN_IF_ERROR(bench.Compile(random));
  RETURN_IF_ERROR(bench.CheckLosses());
  progress("warm up");
  Timing timing(bench.runs(), random.Next());
  RETURN_IF_ERROR(bench.WarmUp(timing));
  std::optional<PeakProbe> peak;
  if (config.compile.device == Device::kGpu) {
    RETURN_IF_ERROR(bench.TimeSynced());
  } else {
    peak.emplace(config.compile.threads);
    for (int i = 0; i < kFirstPeakSamples; ++i) peak->Sample();
  }
  for (int64_t i = 0; i < config.samples; ++i) {
    progress(absl::StrCat("sample ", i + 1, " of ", config.samples));
    RETURN_IF_ERROR(timing.Sample());
    if (peak) peak->Sample();
  }
  return bench.Row(timing, peak ? peak->best_gflops() : 0);
}

}  // namespace onestep
