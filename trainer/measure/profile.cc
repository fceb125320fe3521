// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/profile.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/clock.h"
#include "runtime/openmp_forks.h"
#include "runtime/status.h"
#include "runtime/timed_cuda.h"
#include "trainer/interrupt.h"
#include "trainer/measure/bandwidth.h"
#include "trainer/measure/peak.h"
#include "trainer/measure/statistics.h"
#include "trainer/measure/step_bench.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

// Of a slice: long enough that its begin and end are not in the way.
constexpr double kSliceNs = 10e6;
constexpr int64_t kLeastSlices = 10;  // of each kind
constexpr double kWarmUpNs = 200e6;
constexpr double kOutlier = 1.5;
// Where the rows are further than this from the step, they are doubted.
constexpr double kDoubt = 0.05;
// Outliers are taken anew, up to so many times as many slices as wanted.
constexpr int64_t kMostTries = 3;
// Of a slice: bounds the memory of its trace.
constexpr int64_t kMostSteps = 20000;
// Of a slice: a team's begin and end take 10 to 100 us.
constexpr int64_t kLeastSteps = 10;
constexpr int kPeakSamples = 30;

// What one worker's steps took in one slice or several, in nanoseconds: a value
// per step, but for `run` (a value per slice).
struct WorkerTimes {
  std::vector<std::vector<double>> calls;  // [call][step]
  std::vector<double> fork_join, dispatch, run;

  void Append(const WorkerTimes& more) {
    calls.resize(more.calls.size());
    for (size_t c = 0; c < calls.size(); ++c) Append(more.calls[c], calls[c]);
    Append(more.fork_join, fork_join);
    Append(more.dispatch, dispatch);
    Append(more.run, run);
  }

 private:
  static void Append(const std::vector<double>& more, std::vector<double>& to) {
    to.insert(to.end(), more.begin(), more.end());
  }
};

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

class Profiler {
 public:
  Profiler(const ProfiledWay& way, const ProfileOptions& options)
      : way_(way), threads_(way.compile.threads), options_(options) {
    profile_.name = way.name;
    profile_.device = way.compile.device;
    profile_.batch = options.batch;
  }

  // Compiles and warms up.
  absl::Status Prepare(const ModelSpec& model, const OptimizerSpec& optimizer,
                       const Dataset& data);
  absl::Status TakeSlice();
  // Whether there are as many slices as wanted, of such as count, or so many
  // that it is time to stop.
  bool IsDone() const;
  // `trace`: null: none.
  absl::StatusOr<Profile> Finish(TraceFile* trace);

 private:
  struct Slice {
    double us = 0;  // per step, undisturbed
    double traced_us = 0;
    std::vector<WorkerTimes> workers;
  };

  absl::Status WarmUp();
  int64_t WantedSlices() const;
  void NoteWhatIsMissing();
  // Those that nothing else slowed.
  std::vector<const Slice*> Kept() const;
  void AddTrace(const StepTrace& trace, int w, WorkerTimes& times);
  static void AddGpuTrace(const StepTrace& trace, WorkerTimes& times);
  double DispatchNs(const StepInfo& step) const;
  void AddRows(int w);
  void AddRow(int w, ProfileKind kind, StepInfo step,
              const std::vector<double>& ns);
  void AddRates(ProfileRow& row) const;
  void MeasureRoofs();

  const ProfiledWay& way_;
  const int threads_;
  const ProfileOptions& options_;
  int64_t memory_bytes_ = 0;        // that a step touches
  std::optional<TimedCuda> timed_;  // on a GPU; the session calls it
  std::unique_ptr<StepSession> session_;
  int64_t slice_steps_ = 1, forks_missed_ = 0;
  std::vector<Slice> slices_;
  std::vector<WorkerTimes> workers_;
  std::vector<StepTrace> kept_traces_;  // for options_.trace
  int64_t traced_steps_ = 0;            // in them
  absl::Status traced_;
  Profile profile_;
};

absl::Status Profiler::Prepare(const ModelSpec& model,
                               const OptimizerSpec& optimizer,
                               const Dataset& data) {
  CompileOptions compile = way_.compile;
  if (compile.device == Device::kGpu) {
    CudaApi* const cuda = compile.cuda.cuda;
    timed_.emplace(cuda == nullptr ? RealCuda() : *cuda);
    compile.cuda.cuda = &*timed_;
  }
  ASSIGN_OR_RETURN(session_, StepSession::Create(model, optimizer, compile,
                                                 data, options_.batch));
  const Executable& executable = session_->executable();
  profile_.lowering = executable.lowering();
  profile_.dispatch = session_->compiled().dispatch;
  profile_.workers = executable.workers();
  // Its values, the params, and the rows it fetches.
  memory_bytes_ = executable.arena_bytes() + 4 * model.num_parameters() +
                  options_.batch * model.features();
  if (!timed_) {
    ASSIGN_OR_RETURN(profile_.cost, MeasureDispatchCost());
  }
  RETURN_IF_ERROR(session_->Reset(kTimingRate));
  return WarmUp();
}

absl::StatusOr<Profile> Profiler::Finish(TraceFile* trace) {
  if (timed_) {
    ASSIGN_OR_RETURN(
        profile_.accounting,
        AccountForCalls(*session_, *timed_, slice_steps_, kLeastSlices));
  } else {
    MeasureRoofs();
  }
  workers_.resize(profile_.workers);
  for (const Slice& slice : slices_) profile_.slices_us.push_back(slice.us);
  std::vector<double> undisturbed, profiled;
  for (const Slice* const slice : Kept()) {
    undisturbed.push_back(slice->us);
    profiled.push_back(slice->traced_us);
    if (slice->workers.empty()) continue;
    profile_.steps += slice_steps_;
    for (int w = 0; w < profile_.workers; ++w) {
      workers_[w].Append(slice->workers[w]);
    }
  }
  profile_.undisturbed_us = Mean(undisturbed);
  profile_.undisturbed_low_us = Percentile(undisturbed, 0.05);
  profile_.undisturbed_high_us = Percentile(undisturbed, 0.95);
  profile_.profiled_us = Mean(profiled);
  for (int w = 0; w < profile_.workers; ++w) AddRows(w);
  NoteWhatIsMissing();
  if (trace != nullptr) {
    trace->AddCompile(absl::StrCat("compile, ", way_.name),
                      session_->compiled());
    trace->AddSteps(session_->compiled(), kept_traces_, options_.trace_steps,
                    way_.name);
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
    slice_steps_ = std::clamp(static_cast<int64_t>(kSliceNs / best_ns),
                              kLeastSteps, kMostSteps);
  }
  return absl::OkStatus();
}

absl::Status Profiler::TakeSlice() {
  Slice& slice = slices_.emplace_back();
  const double steps = static_cast<double>(slice_steps_);
  const int64_t begin = NowNs();
  RETURN_IF_ERROR(session_->Run(slice_steps_));
  slice.us = 1e-3 * static_cast<double>(NowNs() - begin) / steps;
  if (!traced_.ok()) return absl::OkStatus();
  std::vector<StepTrace> traces;
  traced_ = session_->RunTraced(slice_steps_, traces);
  // One kernel for many steps has no calls within it.
  if (absl::IsUnimplemented(traced_) && timed_) return absl::OkStatus();
  RETURN_IF_ERROR(traced_);
  int64_t ns = 0;
  slice.workers.resize(profile_.workers);
  for (WorkerTimes& times : slice.workers) times.run = {0};
  for (StepTrace& trace : traces) {
    ns += trace.end - trace.begin;
    for (int w = 0; w < profile_.workers; ++w) {
      if (timed_) {
        AddGpuTrace(trace, slice.workers[w]);
      } else {
        AddTrace(trace, w, slice.workers[w]);
      }
    }
    if (traced_steps_ < options_.trace_steps) {
      traced_steps_ += trace.steps;
      kept_traces_.push_back(std::move(trace));
    }
  }
  slice.traced_us = 1e-3 * static_cast<double>(ns) / steps;
  return absl::OkStatus();
}

int64_t Profiler::WantedSlices() const {
  return std::max(kLeastSlices,
                  (options_.steps + slice_steps_ - 1) / slice_steps_);
}

bool Profiler::IsDone() const {
  const int64_t slices = std::ssize(slices_), wanted = WantedSlices();
  if (slices < wanted) return false;
  return slices >= kMostTries * wanted || std::ssize(Kept()) >= wanted;
}

void Profiler::NoteWhatIsMissing() {
  const auto note = [this](const std::string& text) {
    absl::StrAppend(&profile_.note, profile_.note.empty() ? "" : "; ", text);
  };
  if (const std::string turns = TakeTurnsNote(threads_);
      !timed_ && !turns.empty()) {
    note(turns);
  }
  if (!timed_ && profile_.workers == 1 && threads_ > 1 &&
      !ForkRecorder::Available().ok()) {
    note(std::string(ForkRecorder::Available().message()));
  }
  if (absl::IsUnimplemented(traced_)) note(std::string(traced_.message()));
  if (forks_missed_ > 0) {
    note(absl::StrCat(forks_missed_,
                      " forks not seen: more than two in a call"));
  }
  const int64_t left_out = std::ssize(slices_) - std::ssize(Kept());
  if (left_out > 0) {
    note(absl::StrCat(left_out, " of ", slices_.size(),
                      " slices left out: something else had a core"));
  }
  double unaccounted = 0;
  for (const ProfileRow& row : profile_.rows) {
    if (row.kind == ProfileKind::kUnaccounted) {
      unaccounted = std::max(unaccounted, std::abs(row.share));
    }
  }
  const double change = profile_.profiled_us / profile_.undisturbed_us - 1;
  if (!timed_ && std::max(unaccounted, std::abs(change)) > kDoubt) {
    note(
        "the rows and the undisturbed step are more than 5 % apart: the "
        "machine was busy, or the step is too short to be looked at");
  }
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
  if (!kept.empty()) return kept;
  for (const Slice& slice : slices_) kept.push_back(&slice);
  return kept;
}

// What a call costs that computes nothing.
double Profiler::DispatchNs(const StepInfo& step) const {
  const DispatchCost& cost = profile_.cost;
  if (!absl::StartsWith(step.implementation, "onednn")) return cost.call_ns;
  return step.op == "matmul" ? cost.matmul_ns : cost.eltwise_ns;
}

void Profiler::AddTrace(const StepTrace& trace, int w, WorkerTimes& times) {
  const StepTrace::Worker& worker = trace.workers[w];
  const std::vector<StepInfo>& steps = session_->executable().WorkerSteps(w);
  const double clock_ns = profile_.cost.clock_ns;
  times.calls.resize(worker.calls);
  forks_missed_ += worker.forks_missed;
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
        // Two of the fork's four reads are in the rest of the call.
        ns -= waited + 4 * clock_ns;
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
  times.run.back() += outside / static_cast<double>(slice_steps_);
}

void Profiler::AddGpuTrace(const StepTrace& trace, WorkerTimes& times) {
  const StepTrace::Worker& worker = trace.workers[0];
  times.calls.resize(worker.calls);
  for (int64_t s = 0; s < trace.steps; ++s) {
    for (int64_t c = 0; c < worker.calls; ++c) {
      times.calls[c].push_back(
          static_cast<double>(worker.at(s, c + 1) - worker.at(s, c)));
    }
  }
}

void Profiler::MeasureRoofs() {
  const int threads = profile_.workers == 1 ? threads_ : 1;
  PeakProbe peak(threads);
  for (int i = 0; i < kPeakSamples; ++i) peak.Sample();
  profile_.peak_gflops = peak.best_gflops();
  profile_.bandwidth_gbs =
      CopyBandwidth(threads, memory_bytes_ / profile_.workers);
}

void Profiler::AddRates(ProfileRow& row) const {
  if (row.mean_us <= 0) return;
  // On a GPU nothing says what its roofs are.
  const bool has_roofs = !timed_;
  row.gflops = row.step.flops / row.mean_us * 1e-3;
  row.gbs = row.step.bytes / row.mean_us * 1e-3;
  const double least_us =
      1e-3 * std::max(row.step.flops / profile_.peak_gflops,
                      row.step.bytes / profile_.bandwidth_gbs);
  if (has_roofs) row.roofline = least_us / row.mean_us;
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
  for (size_t c = 0; c < times.calls.size(); ++c) {
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
  if (!timed_ && profile_.workers == 1 && threads_ > 1) {
    add(ProfileKind::kForkJoin,
        named("fork and join", "OpenMP, before and after the caller's part"),
        times.fork_join);
  }
  if (!timed_) {
    add(ProfileKind::kDispatch,
        named("dispatch", absl::StrCat(steps.size(), " calls, next addresses")),
        times.dispatch);
    add(ProfileKind::kRun,
        named("run", absl::StrCat("begin and end of ", slice_steps_, " steps")),
        times.run);
  }
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

absl::StatusOr<std::vector<Profile>> ProfileSteps(
    const ModelSpec& model, const OptimizerSpec& optimizer,
    const std::vector<ProfiledWay>& ways, const Dataset& data,
    const ProfileOptions& options) {
  std::vector<std::unique_ptr<Profiler>> profilers;
  for (const ProfiledWay& way : ways) {
    auto profiler = std::make_unique<Profiler>(way, options);
    const absl::Status status = profiler->Prepare(model, optimizer, data);
    if (IsRefusal(status) && options.refused != nullptr) {
      options.refused->push_back(
          absl::StrCat(way.name, ": ", status.message()));
      continue;
    }
    RETURN_IF_ERROR(status);
    profilers.push_back(std::move(profiler));
  }
  const auto is_done = [](const auto& profiler) { return profiler->IsDone(); };
  const int64_t begin = NowNs();
  while (!std::all_of(profilers.begin(), profilers.end(), is_done)) {
    const double seconds = 1e-9 * static_cast<double>(NowNs() - begin);
    if (options.most_seconds > 0 && seconds > options.most_seconds) break;
    for (const auto& profiler : profilers) {
      if (PendingSignal() != 0) return absl::CancelledError("stopped");
      RETURN_IF_ERROR(profiler->TakeSlice());
    }
  }
  std::vector<Profile> profiles;
  for (const auto& profiler : profilers) {
    ASSIGN_OR_RETURN(Profile profile, profiler->Finish(options.trace));
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

Interval RatioOf(const Profile& a, const Profile& b) {
  return PairedRatio({a.slices_us}, {b.slices_us});
}

}  // namespace onestep
