// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/cpu/openmp_forks.h"
#include "runtime/cuda/cuda_api.h"
#include "trainer/interrupt.h"
#include "trainer/measure/bandwidth.h"
#include "trainer/measure/peak.h"
#include "trainer/measure/statistics.h"
#include "trainer/measure/step_bench.h"
#include "trainer/measure/step_session.h"
#include "trainer/measure/timing.h"
#include "trainer/measure/worker_times.h"

namespace onestep {
namespace {

// Of a slice: long enough that its begin and end are not in the way.
constexpr double kSliceNs = 10e6;
constexpr int64_t kLeastSlices = 10;  // of each kind
constexpr double kWarmUpNs = 200e6;
// What slows a slice so much, such as a hypervisor, the kernel need not know.
constexpr double kOutlier = 1.5;
// Where the rows are further than this from the step, they are doubted.
constexpr double kDoubt = 0.05;
// Disturbed ones are taken anew, up to so many times as many slices as wanted.
constexpr int64_t kMostTries = 3;
// Of a slice: bounds the memory of its trace.
constexpr int64_t kMostSteps = 20000;
constexpr int kPeakSamples = 30;

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
  // Takes none, but for the first, when it is or becomes later than that.
  absl::Status TakeSlice(int64_t latest_ns);
  // Whether there are as many slices as wanted, of such as count, or so many
  // that it is time to stop.
  bool IsDone() const;
  // `trace`: null: none.
  absl::StatusOr<Profile> Finish(TraceFile* trace);

 private:
  struct Slice {
    double us = 0;  // per step, untraced
    double traced_us = 0;
    bool disturbed = false;
    std::vector<WorkerTimes> workers;
  };

  absl::Status WarmUp();
  void AddTraces(std::vector<StepTrace>& traces, Slice& slice);
  int64_t WantedSlices() const;
  void Note(const std::string& text);
  void NoteDisturbances(size_t kept);
  void NoteWhatIsMissing();
  // Those that nothing else slowed; may be none.
  std::vector<const Slice*> Kept() const;
  void AddRows(int w);
  void AddRow(int w, ProfileKind kind, StepInfo step,
              const std::vector<double>& ns);
  void AddRates(ProfileRow& row) const;
  void MeasureRoofs();

  const ProfiledWay& way_;
  const int threads_;
  const ProfileOptions& options_;
  int64_t memory_bytes_ = 0;  // that a step touches
  CudaApi* cuda_ = nullptr;   // that the session uses; null: on the CPU
  std::unique_ptr<StepSession> session_;
  RunSteps run_;  // of the session
  int64_t slice_steps_ = 1;
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
  if (way_.compile.device == Device::kGpu) {
    ASSIGN_OR_RETURN(cuda_, way_.compile.cuda.Api());
  }
  ASSIGN_OR_RETURN(session_, StepSession::Create(model, optimizer, way_.compile,
                                                 data, options_.batch));
  const Executable& executable = session_->executable();
  profile_.lowering = executable.lowering();
  profile_.dispatch = session_->compiled().dispatch;
  profile_.workers = executable.workers();
  // Its values, the params, and the rows it fetches.
  memory_bytes_ = executable.arena_bytes() + 4 * model.num_parameters() +
                  options_.batch * model.features();
  if (cuda_ == nullptr) {
    ASSIGN_OR_RETURN(profile_.cost, MeasureDispatchCost());
  }
  RETURN_IF_ERROR(session_->Reset(kTimingRate));
  run_ = StepsOf(*session_);
  return WarmUp();
}

absl::StatusOr<Profile> Profiler::Finish(TraceFile* trace) {
  if (cuda_ != nullptr) {
    ASSIGN_OR_RETURN(
        profile_.accounting,
        AccountForCalls(*session_, *cuda_, slice_steps_, kLeastSlices));
  } else {
    MeasureRoofs();
  }
  workers_.resize(profile_.workers);
  std::vector<const Slice*> kept = Kept();
  NoteDisturbances(kept.size());
  if (kept.empty()) {
    for (const Slice& slice : slices_) kept.push_back(&slice);
  }
  for (const Slice& slice : slices_) {
    const bool is_kept = std::count(kept.begin(), kept.end(), &slice) > 0;
    profile_.slices.push_back({slice.us, is_kept});
  }
  std::vector<double> undisturbed, profiled;
  for (const Slice* const slice : kept) {
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
    RETURN_IF_ERROR(run_(slice_steps_));
    best_ns = std::min(best_ns, static_cast<double>(NowNs() - start) /
                                    static_cast<double>(slice_steps_));
    slice_steps_ = std::clamp(static_cast<int64_t>(kSliceNs / best_ns),
                              int64_t{1}, kMostSteps);
  }
  return absl::OkStatus();
}

absl::Status Profiler::TakeSlice(int64_t latest_ns) {
  const auto is_late = [&] { return !slices_.empty() && NowNs() > latest_ns; };
  if (is_late()) return absl::OkStatus();
  Slice slice;
  const double steps = static_cast<double>(slice_steps_);
  const Disturbance disturbance(options_.waits);
  const int64_t begin = NowNs();
  RETURN_IF_ERROR(run_(slice_steps_));
  slice.us = 1e-3 * static_cast<double>(NowNs() - begin) / steps;
  if (PendingSignal() != 0) return absl::CancelledError("stopped");
  if (is_late()) return absl::OkStatus();  // half a slice is none
  std::vector<StepTrace> traces;
  if (traced_.ok()) traced_ = session_->RunTraced(slice_steps_, traces);
  slice.disturbed = disturbance.Seen();
  if (traced_.ok()) {
    AddTraces(traces, slice);
  } else if (cuda_ == nullptr || !absl::IsUnimplemented(traced_)) {
    return traced_;  // but one kernel for many steps has no calls within it
  }
  slices_.push_back(std::move(slice));
  return absl::OkStatus();
}

void Profiler::AddTraces(std::vector<StepTrace>& traces, Slice& slice) {
  int64_t ns = 0;
  slice.workers.resize(profile_.workers);
  for (WorkerTimes& times : slice.workers) times.run = {0};
  for (StepTrace& trace : traces) {
    ns += trace.end - trace.begin;
    for (int w = 0; w < profile_.workers; ++w) {
      if (cuda_ != nullptr) {
        profile_.cost.clock_ns = trace.workers[w].empty_ns;
        AddGpuTrace(trace, slice.workers[w]);
      } else {
        AddTrace(trace, w, session_->executable().WorkerSteps(w), profile_.cost,
                 slice_steps_, slice.workers[w]);
      }
    }
    if (traced_steps_ < options_.trace_steps) {
      traced_steps_ += trace.steps;
      kept_traces_.push_back(std::move(trace));
    }
  }
  slice.traced_us =
      1e-3 * static_cast<double>(ns) / static_cast<double>(slice_steps_);
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

void Profiler::Note(const std::string& text) {
  absl::StrAppend(&profile_.note, profile_.note.empty() ? "" : "; ", text);
}

void Profiler::NoteDisturbances(size_t kept) {
  const size_t all = slices_.size(), left_out = all - kept;
  profile_.busy = kept < std::min<size_t>(kLeastSlices, all);
  if (kept == 0) {
    Note(absl::StrCat("the machine was busy: something else had a core in ",
                      "each of the ", all, " slices"));
  } else if (left_out > 0) {
    Note(absl::StrCat(profile_.busy ? "the machine was busy: " : "", left_out,
                      " of ", all,
                      " slices left out: something else had a core"));
  }
}

void Profiler::NoteWhatIsMissing() {
  if (const std::string turns = TakeTurnsNote(threads_);
      cuda_ == nullptr && !turns.empty()) {
    Note(turns);
  }
  if (cuda_ == nullptr && profile_.workers == 1 && threads_ > 1 &&
      !ForkRecorder::Available().ok()) {
    Note(std::string(ForkRecorder::Available().message()));
  }
  if (absl::IsUnimplemented(traced_)) Note(std::string(traced_.message()));
  int64_t forks_missed = 0;
  for (const WorkerTimes& times : workers_) forks_missed += times.forks_missed;
  if (forks_missed > 0) {
    Note(
        absl::StrCat(forks_missed, " forks not seen: more than two in a call"));
  }
  if (traced_.ok() && profile_.steps < options_.steps) {
    Note(
        absl::StrCat("over ", profile_.steps, " steps: want ", options_.steps));
  }
  double unaccounted = 0;
  for (const ProfileRow& row : profile_.rows) {
    if (row.kind == ProfileKind::kUnaccounted) {
      unaccounted = std::max(unaccounted, std::abs(row.share));
    }
  }
  const double change = profile_.profiled_us / profile_.undisturbed_us - 1;
  if (cuda_ == nullptr && std::max(unaccounted, std::abs(change)) > kDoubt) {
    Note(
        "the rows and the undisturbed step are more than 5 % apart: the "
        "machine was busy, or the step is too short to be looked at");
  }
}

std::vector<const Profiler::Slice*> Profiler::Kept() const {
  std::vector<const Slice*> kept;
  std::vector<double> us, traced_us;
  for (const Slice& slice : slices_) {
    if (slice.disturbed) continue;
    kept.push_back(&slice);
    us.push_back(slice.us);
    traced_us.push_back(slice.traced_us);
  }
  if (kept.empty()) return kept;
  const double limit = kOutlier * Median(us);
  const double traced_limit = kOutlier * Median(traced_us);
  std::erase_if(kept, [&](const Slice* slice) {
    return slice->us > limit || slice->traced_us > traced_limit;
  });
  return kept;
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
  const bool has_roofs = cuda_ == nullptr;
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
  if (cuda_ == nullptr && profile_.workers == 1 && threads_ > 1) {
    add(ProfileKind::kForkJoin,
        named("fork and join", "OpenMP, before and after the caller's part"),
        times.fork_join);
  }
  if (cuda_ == nullptr) {
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
  int64_t latest_ns = std::numeric_limits<int64_t>::max();
  if (options.most_seconds > 0) {
    latest_ns = NowNs() + static_cast<int64_t>(1e9 * options.most_seconds);
  }
  do {
    for (const auto& profiler : profilers) {
      RETURN_IF_ERROR(profiler->TakeSlice(latest_ns));
    }
  } while (NowNs() <= latest_ns &&
           !std::all_of(profilers.begin(), profilers.end(), is_done));
  std::vector<Profile> profiles;
  for (const auto& profiler : profilers) {
    ASSIGN_OR_RETURN(Profile profile, profiler->Finish(options.trace));
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

Interval RatioOf(const Profile& a, const Profile& b) {
  std::vector<double> of_a, of_b, all_of_a, all_of_b;
  for (size_t i = 0; i < std::min(a.slices.size(), b.slices.size()); ++i) {
    all_of_a.push_back(a.slices[i].us);
    all_of_b.push_back(b.slices[i].us);
    if (!a.slices[i].kept || !b.slices[i].kept) continue;
    of_a.push_back(a.slices[i].us);
    of_b.push_back(b.slices[i].us);
  }
  return of_a.empty() ? PairedRatio({all_of_a}, {all_of_b})
                      : PairedRatio({of_a}, {of_b});
}

}  // namespace onestep
