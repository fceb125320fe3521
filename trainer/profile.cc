// SPDX-License-Identifier: Apache-2.0
#include "trainer/profile.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/clock.h"
#include "runtime/openmp_forks.h"
#include "runtime/status.h"
#include "trainer/bandwidth.h"
#include "trainer/peak.h"
#include "trainer/statistics.h"
#include "trainer/step_bench.h"
#include "trainer/step_session.h"

namespace onestep {
namespace {

// Of a slice: long enough that its begin and end are not in the way.
constexpr double kSliceNs = 10e6;
constexpr int64_t kLeastSlices = 10;  // of each kind
constexpr double kWarmUpNs = 200e6;
constexpr double kOutlier = 1.5;
// Outliers are taken anew, up to so many times as many slices as wanted.
constexpr int64_t kMostTries = 3;
// Of a slice: bounds the memory of its trace.
constexpr int64_t kMostSteps = 20000;
constexpr int kPeakSamples = 30;

// What one worker's steps took, in nanoseconds: a value per step, but for `run`
// (a value per slice).
struct WorkerTimes {
  std::vector<std::vector<double>> calls;  // [call][step]
  std::vector<double> fork_join, dispatch, run;
};

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

class Profiler {
 public:
  Profiler(const CompileOptions& compile, const ProfileOptions& options)
      : threads_(compile.threads), options_(options) {
    profile_.name = options.name;
  }

  absl::StatusOr<Profile> Run(StepSession& session, int64_t memory_bytes);

 private:
  struct Slice {
    double us = 0;  // per step, undisturbed
    double traced_us = 0;
    std::vector<StepTrace> traces;
  };

  absl::Status WarmUp();
  absl::Status TakeSlice();
  absl::Status TakeSlices();
  // Those that nothing else slowed.
  std::vector<const Slice*> Kept() const;
  void AddTrace(const StepTrace& trace, int w);
  double DispatchNs(const StepInfo& step) const;
  void AddRows(int w);
  void AddRow(int w, ProfileKind kind, StepInfo step,
              const std::vector<double>& ns);
  void AddRates(ProfileRow& row) const;
  void MeasureRoofs(int64_t memory_bytes);

  const int threads_;
  const ProfileOptions& options_;
  StepSession* session_ = nullptr;
  int64_t slice_steps_ = 1;
  std::vector<Slice> slices_;
  std::vector<WorkerTimes> workers_;
  std::vector<StepTrace> kept_traces_;
  Profile profile_;
};

absl::StatusOr<Profile> Profiler::Run(StepSession& session,
                                      int64_t memory_bytes) {
  session_ = &session;
  const Executable& executable = session.executable();
  profile_.lowering = executable.lowering();
  profile_.workers = executable.workers();
  if (profile_.workers == 1 && threads_ > 1) {
    profile_.note = std::string(ForkRecorder::Available().message());
  }
  ASSIGN_OR_RETURN(profile_.cost, MeasureDispatchCost());
  RETURN_IF_ERROR(session.Reset(kTimingRate));
  RETURN_IF_ERROR(WarmUp());
  RETURN_IF_ERROR(TakeSlices());
  MeasureRoofs(memory_bytes);
  workers_.resize(profile_.workers);
  std::vector<double> undisturbed, profiled;
  for (const Slice* const slice : Kept()) {
    undisturbed.push_back(slice->us);
    profiled.push_back(slice->traced_us);
    for (const StepTrace& trace : slice->traces) {
      profile_.steps += trace.steps;
      for (int w = 0; w < profile_.workers; ++w) AddTrace(trace, w);
      if (profile_.steps - trace.steps < options_.trace_steps) {
        kept_traces_.push_back(trace);
      }
    }
  }
  profile_.undisturbed_us = Mean(undisturbed);
  profile_.undisturbed_low_us = Percentile(undisturbed, 0.05);
  profile_.undisturbed_high_us = Percentile(undisturbed, 0.95);
  profile_.profiled_us = Mean(profiled);
  for (int w = 0; w < profile_.workers; ++w) AddRows(w);
  if (options_.trace != nullptr) {
    options_.trace->AddCompile(absl::StrCat("compile, ", options_.name),
                               session.compiled());
    options_.trace->AddSteps(session.compiled(), kept_traces_,
                             options_.trace_steps);
  }
  return std::move(profile_);
}

absl::Status Profiler::WarmUp() {
  const int64_t begin = NowNs();
  double best_ns = 1e12;
  while (static_cast<double>(NowNs() - begin) < kWarmUpNs) {
    const int64_t start = NowNs();
    RETURN_IF_ERROR(session_->Run(slice_steps_));
    best_ns = std::min(best_ns, static_cast<double>(NowNs() - start) /
                                    static_cast<double>(slice_steps_));
    slice_steps_ = std::clamp<int64_t>(static_cast<int64_t>(kSliceNs / best_ns),
                                       1, kMostSteps);
  }
  return absl::OkStatus();
}

absl::Status Profiler::TakeSlice() {
  Slice& slice = slices_.emplace_back();
  const double steps = static_cast<double>(slice_steps_);
  const int64_t begin = NowNs();
  RETURN_IF_ERROR(session_->Run(slice_steps_));
  slice.us = 1e-3 * static_cast<double>(NowNs() - begin) / steps;
  RETURN_IF_ERROR(session_->RunTraced(slice_steps_, slice.traces));
  int64_t ns = 0;
  for (const StepTrace& trace : slice.traces) ns += trace.end - trace.begin;
  slice.traced_us = 1e-3 * static_cast<double>(ns) / steps;
  return absl::OkStatus();
}

absl::Status Profiler::TakeSlices() {
  const int64_t wanted = std::max(
      kLeastSlices, (options_.steps + slice_steps_ - 1) / slice_steps_);
  for (int64_t i = 0; i < kMostTries * wanted; ++i) {
    if (i >= wanted && std::ssize(Kept()) >= wanted) break;
    RETURN_IF_ERROR(TakeSlice());
  }
  const int64_t left_out = std::ssize(slices_) - std::ssize(Kept());
  if (left_out > 0) {
    absl::StrAppend(&profile_.note, profile_.note.empty() ? "" : "; ", left_out,
                    " of ", slices_.size(),
                    " slices left out: something else had a core");
  }
  return absl::OkStatus();
}

std::vector<const Profiler::Slice*> Profiler::Kept() const {
  std::vector<double> us, traced_us;
  for (const Slice& slice : slices_) {
    us.push_back(slice.us);
    traced_us.push_back(slice.traced_us);
  }
  const double limit = kOutlier * Median(us);
  const double traced_limit = kOutlier * Median(traced_us);
  std::vector<const Slice*> kept;
  for (const Slice& slice : slices_) {
    if (slice.us <= limit && slice.traced_us <= traced_limit) {
      kept.push_back(&slice);
    }
  }
  return kept;
}

// What a call costs that computes nothing.
double Profiler::DispatchNs(const StepInfo& step) const {
  const DispatchCost& cost = profile_.cost;
  if (!absl::StartsWith(step.implementation, "onednn")) return cost.call_ns;
  return step.op == "matmul" ? cost.matmul_ns : cost.eltwise_ns;
}

void Profiler::AddTrace(const StepTrace& trace, int w) {
  const StepTrace::Worker& worker = trace.workers[w];
  const std::vector<StepInfo>& steps = session_->executable().WorkerSteps(w);
  const double clock_ns = profile_.cost.clock_ns;
  WorkerTimes& times = workers_[w];
  times.calls.resize(worker.calls);
  int64_t next_fork = 0;
  for (int64_t s = 0; s < trace.steps; ++s) {
    double dispatch = 0, fork_join = 0;
    for (int64_t c = 0; c < worker.calls; ++c) {
      double ns = worker.at(s, c + 1) - worker.at(s, c) - clock_ns;
      for (; next_fork < worker.forks_recorded &&
             worker.forks[next_fork].end <= worker.at(s, c + 1);
           ++next_fork) {
        const ForkStamps& fork = worker.forks[next_fork];
        const double waited = fork.body_begin - fork.begin + fork.end -
                              fork.body_end - 2 * clock_ns;
        fork_join += waited;
        ns -= waited + 2 * clock_ns;
      }
      const double call_ns = std::min(ns, DispatchNs(steps[c]));
      dispatch += call_ns;
      times.calls[c].push_back(ns - call_ns);
    }
    if (s + 1 < trace.steps) {
      dispatch += worker.at(s + 1, 0) - worker.at(s, worker.calls) - clock_ns;
    }
    times.dispatch.push_back(dispatch);
    times.fork_join.push_back(fork_join);
  }
  const double outside = worker.at(0, 0) - trace.begin + trace.end -
                         worker.at(trace.steps - 1, worker.calls);
  times.run.push_back(outside / static_cast<double>(trace.steps));
}

void Profiler::MeasureRoofs(int64_t memory_bytes) {
  const int threads = profile_.workers == 1 ? threads_ : 1;
  PeakProbe peak(threads);
  for (int i = 0; i < kPeakSamples; ++i) peak.Sample();
  profile_.peak_gflops = peak.best_gflops();
  profile_.bandwidth_gbs =
      CopyBandwidth(threads, memory_bytes / profile_.workers);
}

void Profiler::AddRates(ProfileRow& row) const {
  if (row.mean_us <= 0) return;
  row.gflops = row.step.flops / row.mean_us * 1e-3;
  row.gbs = row.step.bytes / row.mean_us * 1e-3;
  const double least_us =
      1e-3 * std::max(row.step.flops / profile_.peak_gflops,
                      row.step.bytes / profile_.bandwidth_gbs);
  row.roofline = least_us / row.mean_us;
}

void Profiler::AddRow(int w, ProfileKind kind, StepInfo step,
                      const std::vector<double>& ns) {
  ProfileRow row;
  row.worker = w;
  row.kind = kind;
  row.step = std::move(step);
  row.mean_us = 1e-3 * Mean(ns);
  row.median_us = 1e-3 * Median(ns);
  row.p95_us = 1e-3 * Percentile(ns, 0.95);
  row.share = row.mean_us / profile_.undisturbed_us;
  if (kind == ProfileKind::kOp || kind == ProfileKind::kExchange) AddRates(row);
  profile_.rows.push_back(std::move(row));
}

void Profiler::AddRows(int w) {
  const std::vector<StepInfo>& steps = session_->executable().WorkerSteps(w);
  const WorkerTimes& times = workers_[w];
  double sum_us = 0;
  const auto add = [&](ProfileKind kind, StepInfo step,
                       const std::vector<double>& ns) {
    AddRow(w, kind, std::move(step), ns);
    sum_us += profile_.rows.back().mean_us;
  };
  for (size_t c = 0; c < steps.size(); ++c) {
    const ProfileKind kind = steps[c].kind == StepKind::kOp ? ProfileKind::kOp
                             : steps[c].kind == StepKind::kWait
                                 ? ProfileKind::kWait
                                 : ProfileKind::kExchange;
    add(kind, steps[c], times.calls[c]);
  }
  const auto named = [](const char* op, std::string label) {
    StepInfo step;
    step.op = op;
    step.label = std::move(label);
    return step;
  };
  if (profile_.workers == 1) {
    add(ProfileKind::kForkJoin,
        named("fork and join", "OpenMP, before and after the caller's part"),
        times.fork_join);
  }
  add(ProfileKind::kDispatch,
      named("dispatch", absl::StrCat(steps.size(), " calls, next addresses")),
      times.dispatch);
  add(ProfileKind::kRun,
      named("run", absl::StrCat("begin and end of ", slice_steps_, " steps")),
      times.run);
  AddRow(w, ProfileKind::kUnaccounted,
         named("unaccounted", "the undisturbed step less all of these"),
         {1e3 * (profile_.undisturbed_us - sum_us)});
}

}  // namespace

const char* ToString(ProfileKind kind) {
  switch (kind) {
    case ProfileKind::kOp:
      return "op";
    case ProfileKind::kExchange:
      return "exchange";
    case ProfileKind::kWait:
      return "wait";
    case ProfileKind::kForkJoin:
      return "fork_join";
    case ProfileKind::kDispatch:
      return "dispatch";
    case ProfileKind::kRun:
      return "run";
    case ProfileKind::kUnaccounted:
      return "unaccounted";
  }
  return "?";
}

absl::StatusOr<Profile> ProfileStep(const ModelSpec& model,
                                    const OptimizerSpec& optimizer,
                                    const CompileOptions& compile,
                                    const Dataset& data,
                                    const ProfileOptions& options) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<StepSession> session,
      StepSession::Create(model, optimizer, compile, data, options.batch));
  // What a step touches: its values, the params, and the rows it fetches.
  const int64_t memory = session->executable().arena_bytes() +
                         4 * model.num_parameters() +
                         options.batch * model.features();
  return Profiler(compile, options).Run(*session, memory);
}

}  // namespace onestep
