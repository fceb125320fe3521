// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_program.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/nvtx.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// The share of the free memory that tables may take. The rest is for arrays of
// indices and losses, and for other users of the device.
constexpr double kTableShare = 0.9;

// Launches of the empty kernel, whose median counts.
constexpr int kEmptyNodes = 101;

}  // namespace

absl::StatusOr<std::unique_ptr<CudaSession>> CudaSession::Create(
    CudaApi& cuda) {
  ASSIGN_OR_RETURN(const CudaDevice device, cuda.Device());
  ASSIGN_OR_RETURN(CudaStream stream,
                   Own<CudaStream>(cuda, cuda.CreateStream()));
  return std::make_unique<CudaSession>(cuda, device, std::move(stream));
}

absl::StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::Create(
    std::unique_ptr<CudaSession> session, CudaSpec spec,
    int64_t table_limit_bytes) {
  std::unique_ptr<CudaProgram> program(new CudaProgram);
  program->session_ = std::move(session);
  CudaApi& cuda = program->session_->cuda;
  const CudaApi::Stream stream = program->session_->stream.get();
  if (table_limit_bytes == 0) {
    ASSIGN_OR_RETURN(const int64_t free, cuda.FreeMemory());
    table_limit_bytes = static_cast<int64_t>(kTableShare * free);
  }
  ASSIGN_OR_RETURN(program->bindings_,
                   CudaBindings::Create(cuda, stream, spec.slots, spec.tables,
                                        spec.arena_bytes, spec.workspace_bytes,
                                        table_limit_bytes));
  ASSIGN_OR_RETURN(
      program->signals_memory_,
      Own<CudaPinnedMemory>(cuda, cuda.MallocHost(sizeof(CudaSignals))));
  for (const auto& [slot, value] : spec.constants) {
    const Launch launch =
        spec.fill(static_cast<float*>(program->bindings_->at(slot)), value,
                  spec.slots[slot].bytes / sizeof(float));
    RETURN_IF_ERROR(cuda.LaunchKernel(launch, stream));
  }
  if (program->bindings_->chunk_steps() > 0) {
    absl::StrAppend(&spec.lowering, "; tables on the host, rows brought ",
                    program->bindings_->chunk_steps(), " steps at once");
  }
  program->spec_ = std::move(spec);
  return program;
}

std::unique_ptr<CudaProgram> CudaProgram::Planned(CudaSpec spec,
                                                  absl::Status why) {
  std::unique_ptr<CudaProgram> program(new CudaProgram);
  program->bindings_ = CudaBindings::Planned(
      spec.slots, spec.tables, spec.arena_bytes, spec.workspace_bytes);
  program->spec_ = std::move(spec);
  program->broken_ = std::move(why);
  return program;
}

// Waits for the device before memory and graphs are freed.
CudaProgram::~CudaProgram() {
  if (session_ == nullptr) return;
  if (signals_memory_) {
    auto* const signals = static_cast<CudaSignals*>(signals_memory_.get());
    __atomic_store_n(&signals->stop, 1u, __ATOMIC_RELEASE);
  }
  // An error that matters was returned by the call in which it arose.
  session_->cuda.Synchronize(session_->stream.get()).IgnoreError();
}

absl::Status CudaProgram::Bind(absl::string_view name, void* data,
                               int64_t stride_bytes, int64_t steps) {
  RETURN_IF_ERROR(broken_);
  return bindings_->Bind(name, data, stride_bytes, steps);
}

absl::Status CudaProgram::Run(int64_t n) {
  RETURN_IF_ERROR(broken_);
  if (n <= 0) return absl::OkStatus();
  const ScopedRange range("steps", steps_run_, n);
  return Fail(RunSteps(n, [this](int64_t first, int64_t count) {
    return LaunchSteps(first, count);
  }));
}

// Makes an error final, unless the caller can mend it by binding what it lacks.
absl::Status CudaProgram::Fail(const absl::Status& status) {
  if (status.ok() || absl::IsFailedPrecondition(status)) return status;
  broken_ = absl::Status(status.code(),
                         absl::StrCat("device gpu: ", status.message()));
  return broken_;
}

absl::Status CudaProgram::RunSteps(
    int64_t n,
    absl::FunctionRef<absl::Status(int64_t first, int64_t count)> launch) {
  ASSIGN_OR_RETURN(const bool restarted, bindings_->BeginRun(n));
  RETURN_IF_ERROR(Prepare(n, restarted));
  const int64_t chunk = bindings_->chunk_steps();
  if (chunk == 0) {
    RETURN_IF_ERROR(launch(bindings_->step(), n));
  }
  for (int64_t first = 0; chunk > 0 && first < n; first += chunk) {
    const int64_t count = std::min(chunk, n - first);
    RETURN_IF_ERROR(bindings_->BeginChunk(first, count));
    RETURN_IF_ERROR(launch(first, count));
    RETURN_IF_ERROR(bindings_->EndChunk());
  }
  steps_run_ += n;
  return bindings_->EndRun(n);
}

// Prepares what the launches of this run need, for the current addresses.
absl::Status CudaProgram::Prepare(int64_t n, bool restarted) {
  const bool moved = layout_ != bindings_->layout();
  if (moved) {
    replays_.clear();
    each_.clear();
    layout_ = bindings_->layout();
  }
  const std::vector<CudaNode> begin = restarted && spec_.begin
                                          ? spec_.begin(*bindings_)
                                          : std::vector<CudaNode>();
  if (moved) RETURN_IF_ERROR(Preload(begin));
  if (spec_.launch == CudaLaunch::kPersistent) {
    if (moved) {
      CudaNode node;
      node.launch = spec_.persistent(
          *bindings_, 0, 1, static_cast<CudaSignals*>(signals_memory_.get()));
      RETURN_IF_ERROR(Preload({node}));
    }
  } else if (spec_.launch == CudaLaunch::kEach) {
    if (moved) {
      each_ = spec_.nodes(*bindings_, 1);
      RETURN_IF_ERROR(Preload(each_));
    }
  } else {
    for (const int64_t steps : ReplaySizes(n)) {
      if (replays_.count(steps) > 0) continue;
      ASSIGN_OR_RETURN(const CudaGraph graph, Build(steps));
      CudaApi& cuda = session_->cuda;
      ASSIGN_OR_RETURN(
          replays_[steps],
          Own<CudaGraphExec>(
              cuda, cuda.Instantiate(graph.get(), session_->stream.get())));
    }
  }
  return LaunchAll(begin);
}

// The sizes in steps of the graphs that a run of n steps replays.
std::set<int64_t> CudaProgram::ReplaySizes(int64_t n) const {
  const int64_t per = spec_.steps_per_launch;
  const int64_t chunk =
      bindings_->chunk_steps() > 0 ? std::min(n, bindings_->chunk_steps()) : n;
  std::set<int64_t> sizes;
  for (const int64_t count : {chunk, n % chunk}) {
    if (count >= per) sizes.insert(per);
    if (count % per > 0) sizes.insert(1);
  }
  return sizes;
}

absl::StatusOr<CudaGraph> CudaProgram::Build(int64_t steps) {
  const std::vector<CudaNode> nodes = spec_.nodes(*bindings_, steps);
  RETURN_IF_ERROR(Preload(nodes));
  return BuildCudaGraph(session_->cuda, session_->stream.get(), nodes);
}

absl::Status CudaProgram::Preload(const std::vector<CudaNode>& nodes) {
  std::set<std::pair<const void*, uint32_t>> seen;
  for (const CudaNode& node : nodes) {
    const Launch& launch = node.launch;
    if (node.library ||
        !seen.emplace(launch.kernel, launch.shared_bytes).second) {
      continue;
    }
    RETURN_IF_ERROR(session_->cuda.Preload(launch));
  }
  return absl::OkStatus();
}

absl::Status CudaProgram::LaunchAll(const std::vector<CudaNode>& nodes) {
  for (const CudaNode& node : nodes) {
    RETURN_IF_ERROR(LaunchNode(session_->cuda, session_->stream.get(), node));
  }
  launches_ += std::ssize(nodes);
  return absl::OkStatus();
}

absl::Status CudaProgram::LaunchSteps(int64_t first, int64_t n) {
  switch (spec_.launch) {
    case CudaLaunch::kEach:
      for (int64_t s = 0; s < n; ++s) RETURN_IF_ERROR(LaunchAll(each_));
      return absl::OkStatus();
    case CudaLaunch::kGraph: {
      const int64_t per = spec_.steps_per_launch;
      RETURN_IF_ERROR(Replay(per, n / per));
      return Replay(1, n % per);
    }
    case CudaLaunch::kPersistent:
      return RunPersistent(first, n);
  }
  CHECK(false);
}

absl::Status CudaProgram::Replay(int64_t steps, int64_t times) {
  for (int64_t i = 0; i < times; ++i) {
    RETURN_IF_ERROR(session_->cuda.LaunchGraph(replays_.at(steps).get(),
                                               session_->stream.get()));
  }
  launches_ += times;
  return absl::OkStatus();
}

// Launches the kernel for all the steps. After a slice of time the host stops
// it and launches it again for the steps that are left.
absl::Status CudaProgram::RunPersistent(int64_t first, int64_t n) {
  using Clock = std::chrono::steady_clock;
  CudaApi& cuda = session_->cuda;
  const CudaApi::Stream stream = session_->stream.get();
  auto* const signals = static_cast<CudaSignals*>(signals_memory_.get());
  for (int64_t done = 0; done < n;) {
    const int64_t count =
        spec_.stops ? n - done : std::min(slice_steps_, n - done);
    __atomic_store_n(&signals->stop, 0u, __ATOMIC_RELAXED);
    __atomic_store_n(&signals->progress, 0u, __ATOMIC_RELEASE);
    RETURN_IF_ERROR(cuda.LaunchKernel(
        spec_.persistent(*bindings_, first + done, count, signals), stream));
    ++launches_;
    const Clock::time_point start = Clock::now();
    std::chrono::duration<double> spent;
    while (true) {
      ASSIGN_OR_RETURN(const bool ended, cuda.Done(stream));
      spent = Clock::now() - start;
      if (ended) break;
      if (spent.count() > kSliceSeconds) {
        __atomic_store_n(&signals->stop, 1u, __ATOMIC_RELEASE);
      }
      // Polls without sleep at first, so that a run of a few steps ends at
      // once.
      if (spent.count() > 1e-3) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
    const uint32_t steps =
        __atomic_load_n(&signals->progress, __ATOMIC_ACQUIRE);
    if (steps == 0) {
      return absl::InternalError("the persistent kernel ended without a step");
    }
    done += steps;
    if (!spec_.stops && count == slice_steps_) {
      const double fits = kSliceSeconds / std::max(spent.count(), 1e-6);
      slice_steps_ = std::max<int64_t>(1, count * std::min(fits, 4.0));
    }
  }
  return absl::OkStatus();
}

absl::Status CudaProgram::RunTraced(int64_t n, StepTrace& trace) {
  RETURN_IF_ERROR(broken_);
  if (spec_.launch == CudaLaunch::kPersistent) {
    return absl::UnimplementedError("run traced: a kernel runs whole steps");
  }
  trace = {};
  if (n <= 0) return absl::OkStatus();
  const ScopedRange range("traced steps", steps_run_, n);
  trace.steps = n;
  StepTrace::Worker& worker = trace.workers.emplace_back();
  trace.begin = worker.begin = worker.end = NowNs();
  const absl::Status status =
      Fail(RunSteps(n, [&](int64_t /*first*/, int64_t count) {
        return TraceSteps(n, count, worker);
      }));
  trace.end = NowNs();
  return status;
}

// Traces the next `count` steps of a run of n.
absl::Status CudaProgram::TraceSteps(int64_t n, int64_t count,
                                     StepTrace::Worker& trace) {
  const std::vector<CudaNode> nodes = spec_.nodes(*bindings_, 1);
  RETURN_IF_ERROR(Preload(nodes));
  for (CudaEvent* const event : {&before_node_, &after_node_}) {
    if (*event) continue;
    CudaApi& cuda = session_->cuda;
    ASSIGN_OR_RETURN(*event, Own<CudaEvent>(cuda, cuda.CreateEvent()));
  }
  worker_steps_ = spec_.steps;
  for (size_t i = spec_.steps.size(); i < nodes.size(); ++i) {
    StepInfo& info = worker_steps_.emplace_back();
    info.op = info.label = nodes[i].label;
    info.phase = "boundary";
    info.implementation = "cuda kernel";
  }
  // The copies that begin the run must not count as time of its first node.
  RETURN_IF_ERROR(session_->cuda.Synchronize(session_->stream.get()));
  if (empty_ns_ == 0) RETURN_IF_ERROR(TimeEmptyNode());
  trace.empty_ns = empty_ns_;
  trace.calls = std::ssize(nodes);
  trace.stamps.reserve(n * (trace.calls + 1));
  for (int64_t s = 0; s < count; ++s) {
    trace.stamps.push_back(trace.end);
    for (const CudaNode& node : nodes) {
      const ScopedRange range(node.label);
      ASSIGN_OR_RETURN(const int64_t ns, NodeNs(node));
      trace.stamps.push_back(trace.end += ns);
    }
    launches_ += trace.calls;
  }
  return absl::OkStatus();
}

absl::Status CudaProgram::TimeEmptyNode() {
  CudaNode empty;
  empty.launch = spec_.empty;
  RETURN_IF_ERROR(Preload({empty}));
  std::vector<int64_t> ns(kEmptyNodes);
  for (int64_t& one : ns) {
    ASSIGN_OR_RETURN(one, NodeNs(empty));
  }
  const auto middle = ns.begin() + kEmptyNodes / 2;
  std::nth_element(ns.begin(), middle, ns.end());
  empty_ns_ = *middle;
  return absl::OkStatus();
}

// The device's time for the node, from an idle stream to an idle stream.
absl::StatusOr<int64_t> CudaProgram::NodeNs(const CudaNode& node) {
  CudaApi& cuda = session_->cuda;
  const CudaApi::Stream stream = session_->stream.get();
  RETURN_IF_ERROR(cuda.Record(before_node_.get(), stream));
  RETURN_IF_ERROR(LaunchNode(cuda, stream, node));
  RETURN_IF_ERROR(cuda.Record(after_node_.get(), stream));
  RETURN_IF_ERROR(cuda.WaitOnHost(after_node_.get()));
  ASSIGN_OR_RETURN(const float ms,
                   cuda.Elapsed(before_node_.get(), after_node_.get()));
  return std::llround(1e6 * ms);
}

absl::Status CudaProgram::ParamsToHost() {
  RETURN_IF_ERROR(broken_);
  return Fail(bindings_->ParamsToHost());
}

int64_t CudaProgram::dispatches() const {
  return spec_.launch == CudaLaunch::kEach ? std::ssize(Nodes()) : 1;
}

std::optional<DeviceTraffic> CudaProgram::traffic() const {
  DeviceTraffic traffic = bindings_->traffic();
  traffic.steps = steps_run_;
  traffic.launches = launches_;
  return traffic;
}

std::vector<CudaNode> CudaProgram::Nodes() const {
  if (spec_.launch != CudaLaunch::kPersistent) {
    return spec_.nodes(*bindings_, 1);
  }
  CudaNode node;
  node.label = "steps";
  node.launch = spec_.persistent(*bindings_, 0, 1, nullptr);
  return {node};
}

absl::Status CudaProgram::WriteDot(const std::string& path) {
  RETURN_IF_ERROR(broken_);
  ASSIGN_OR_RETURN(const CudaGraph graph, Build(spec_.steps_per_launch));
  return session_->cuda.WriteDot(graph.get(), path);
}

}  // namespace onestep
