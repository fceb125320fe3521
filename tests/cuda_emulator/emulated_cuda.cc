// SPDX-License-Identifier: Apache-2.0
// What every call goes through, streams and events; memory, graphs with their
// kernels, and matmuls have files of their own.
#include "tests/cuda_emulator/emulated_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// How the streams that are not waited for take part while one is.
enum Mood { kLazy, kMixed, kEager, kNumMoods };

bool StaysForever(int code) {
  return code == kCudaIllegalAddress || code == kCudaLaunchFailure;
}

std::string Counted(int64_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

EmulatedCuda::EmulatedCuda(EmulatedCudaOptions options)
    : options_(std::move(options)), random_(options_.seed) {}

// ---- what every call goes through ------------------------------------------

void EmulatedCuda::FailAt(std::string_view call, int nth, absl::Status status) {
  CHECK(nth >= 1 && (IsCudaCall(call) || call == "RunKernel"));
  failures_.push_back({std::string(call), nth, std::move(status), 0});
}

void EmulatedCuda::FailAt(std::string_view call, int nth, int cuda_error) {
  FailAt(call, nth, absl::OkStatus());
  failures_.back().cuda_error = cuda_error;
}

absl::Status EmulatedCuda::Begin(CudaCall call, bool breaks_capture) {
  const std::string name = call.name;
  log_.Add(std::move(call));
  if (sticky_ != 0) return CudaError(name, sticky_, sticky_detail_);
  RETURN_IF_ERROR(TakeFailure(name));
  if (breaks_capture && Capturing()) {
    return Fail(name, kCudaCaptureUnsupported, "");
  }
  return absl::OkStatus();
}

absl::Status EmulatedCuda::TakeFailure(std::string_view call) {
  for (Failure& failure : failures_) failure.left -= failure.call == call;
  const auto due =
      std::find_if(failures_.begin(), failures_.end(),
                   [](const Failure& failure) { return failure.left == 0; });
  if (due == failures_.end()) return absl::OkStatus();
  const Failure failure = std::move(*due);
  failures_.erase(due);
  if (failure.cuda_error == 0) return failure.status;
  return Fail(call, failure.cuda_error, "injected");
}

// The status of a call that fails, and what its failure does to later ones.
absl::Status EmulatedCuda::Fail(std::string_view call, int code,
                                std::string_view detail) {
  if (StaysForever(code)) {
    sticky_ = code;
    sticky_detail_ = std::string(detail);
    for (auto& [number, stream] : streams_) stream.queue.clear();
  }
  if (code >= kCudaCaptureUnsupported && code <= kCudaCaptureImplicit) {
    InvalidateCaptures();
  }
  return CudaError(call, code, detail);
}

bool EmulatedCuda::BeginDestroy(CudaCall call, bool breaks_capture) {
  const std::string name = call.name;
  log_.Add(std::move(call));
  if (!breaks_capture || !Capturing()) return true;
  InvalidateCaptures();
  errors_.push_back(absl::StrCat(name, " while a stream captures"));
  return false;
}

bool EmulatedCuda::Capturing() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    return entry.second.capture != nullptr;
  });
}

void EmulatedCuda::InvalidateCaptures() {
  for (auto& [number, stream] : streams_) stream.capture_invalid = true;
}

std::string EmulatedCuda::LiveObjects() const {
  int64_t blocks[2] = {}, bytes[2] = {};
  for (const auto& [address, memory] : memory_) {
    ++blocks[memory.pinned];
    bytes[memory.pinned] += memory.bytes;
  }
  std::vector<std::string> live;
  const char* const kinds[] = {"device allocation", "pinned allocation"};
  for (const int pinned : {0, 1}) {
    if (blocks[pinned] == 0) continue;
    live.push_back(absl::StrCat(Counted(blocks[pinned], kinds[pinned]), " (",
                                bytes[pinned], " bytes)"));
  }
  const std::pair<size_t, const char*> objects[] = {
      {streams_.size(), "stream"},
      {events_.size(), "event"},
      {graphs_.size(), "graph"},
      {execs_.size(), "exec"},
      {plans_.size(), "matmul plan"}};
  for (const auto& [count, what] : objects) {
    if (count != 0) live.push_back(Counted(static_cast<int64_t>(count), what));
  }
  std::string text;
  for (const std::string& each : live) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", each);
  }
  return text;
}

std::string EmulatedCuda::RuntimeVersion() {
  return options_.device.runtime_version;
}

absl::StatusOr<CudaDevice> EmulatedCuda::Device() {
  RETURN_IF_ERROR(Begin({"Device"}));
  return options_.device;
}

absl::StatusOr<std::vector<CudaDevice>> EmulatedCuda::Devices() {
  ASSIGN_OR_RETURN(CudaDevice device, Device());
  return std::vector{std::move(device)};
}

// ---- streams ---------------------------------------------------------------

absl::StatusOr<CudaApi::Stream> EmulatedCuda::CreateStream() {
  RETURN_IF_ERROR(Begin({"CreateStream"}));
  const int64_t number = next_handle_++;
  streams_[number];
  return reinterpret_cast<Stream>(number);
}

void EmulatedCuda::DestroyStream(Stream stream) {
  BeginDestroy({.name = "DestroyStream", .stream = Number(stream)});
  const auto found = streams_.find(Number(stream));
  if (found == streams_.end()) {
    errors_.push_back("DestroyStream of what is not a stream");
    return;
  }
  if (found->second.capture != nullptr) {
    errors_.push_back("DestroyStream of a stream that captures");
  }
  if (!found->second.queue.empty()) {
    errors_.push_back(absl::StrCat("DestroyStream of stream ", found->first,
                                   " with work queued"));
    DrainAll();
  }
  streams_.erase(found);
}

absl::StatusOr<EmulatedCuda::StreamState*> EmulatedCuda::Find(const char* call,
                                                              Stream stream) {
  const auto found = streams_.find(Number(stream));
  if (found == streams_.end()) {
    return CudaError(call, kCudaInvalidHandle, "not a stream");
  }
  return &found->second;
}

absl::Status EmulatedCuda::Enqueue(const char* call, Stream stream, Task task) {
  ASSIGN_OR_RETURN(StreamState * state, Find(call, stream));
  if (state->capture == nullptr) {
    state->queue.push_back(std::move(task));
    return absl::OkStatus();
  }
  if (state->capture_invalid) {
    return CudaError(call, kCudaCaptureInvalidated);
  }
  EmulatedNode node{.handle = next_handle_++, .work = std::move(task.work)};
  if (task.exec != nullptr) node.inside = task.exec->graph->Clone();
  const int nodes = static_cast<int>(state->capture->nodes.size());
  if (nodes != 0) node.edges.push_back({.from = nodes - 1});
  state->capture->nodes.push_back(std::move(node));
  return absl::OkStatus();
}

bool EmulatedCuda::Ready(const StreamState& stream) {
  return !stream.queue.empty() && (stream.queue.front().ready == nullptr ||
                                   stream.queue.front().ready());
}

bool EmulatedCuda::Needed(int64_t handle) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
    const std::deque<Task>& queue = entry.second.queue;
    return std::any_of(queue.begin(), queue.end(),
                       [&](const Task& task) { return task.needs == handle; });
  });
}

absl::Status EmulatedCuda::RunWork(const EmulatedWork& work) {
  ++time_;
  if (work.kind == "kernel") RETURN_IF_ERROR(TakeFailure("RunKernel"));
  return work.run(random_());
}

absl::Status EmulatedCuda::RunOne(StreamState& towards, int mood) {
  std::vector<StreamState*> others;
  for (auto& [number, stream] : streams_) {
    if (&stream != &towards && Ready(stream)) others.push_back(&stream);
  }
  const bool own = Ready(towards);
  // What a stream waits for was queued before, so that something can run.
  CHECK(own || !others.empty());
  StreamState* next = &towards;
  if (!own || (mood == kMixed && !others.empty() && random_() % 2 == 0) ||
      (mood == kEager && !others.empty())) {
    next = others[random_() % others.size()];
  }
  Task& task = next->queue.front();
  if (task.exec == nullptr) {
    // A failure clears the queue and the task with it.
    const EmulatedWork work = std::move(task.work);
    next->queue.pop_front();
    return RunWork(work);
  }
  if (task.run == nullptr) {
    task.run = std::make_shared<EmulatedGraphRun>(*task.exec->graph);
  }
  const std::shared_ptr<ExecState> exec = task.exec;
  const std::shared_ptr<EmulatedGraphRun> run = task.run;
  if (!run->done()) {
    RETURN_IF_ERROR(run->Step(
        random_, [this](const EmulatedWork& work) { return RunWork(work); }));
  }
  if (run->done()) {
    ++exec->done;
    next->queue.pop_front();
  }
  return absl::OkStatus();
}

absl::Status EmulatedCuda::RunTowards(const char* call, StreamState& towards,
                                      int mood) {
  const absl::Status status = RunOne(towards, mood);
  if (status.ok()) return status;
  return Fail(call, sticky_ != 0 ? sticky_ : kCudaLaunchFailure,
              std::string(status.message()));
}

absl::Status EmulatedCuda::Drain(const char* call, StreamState& stream) {
  const int mood = static_cast<int>(random_() % kNumMoods);
  while (!stream.queue.empty()) {
    RETURN_IF_ERROR(RunTowards(call, stream, mood));
  }
  return absl::OkStatus();
}

void EmulatedCuda::DrainAll() {
  for (auto& [number, stream] : streams_) {
    const absl::Status status = Drain("cudaDeviceSynchronize", stream);
    if (!status.ok()) errors_.push_back(std::string(status.message()));
  }
}

absl::Status EmulatedCuda::Synchronize(Stream stream) {
  RETURN_IF_ERROR(
      Begin({.name = "Synchronize", .stream = Number(stream)}, true));
  ASSIGN_OR_RETURN(StreamState * state, Find("Synchronize", stream));
  return Drain("Synchronize", *state);
}

absl::StatusOr<bool> EmulatedCuda::Done(Stream stream) {
  RETURN_IF_ERROR(Begin({.name = "Done", .stream = Number(stream)}, true));
  ASSIGN_OR_RETURN(StreamState * state, Find("Done", stream));
  if (options_.busy && options_.busy()) return false;
  constexpr int kPieces[] = {0, 1, 4, 64};
  const int mood = static_cast<int>(random_() % kNumMoods);
  const int pieces = kPieces[random_() % std::size(kPieces)];
  for (int i = 0; i < pieces && !state->queue.empty(); ++i) {
    RETURN_IF_ERROR(RunTowards("Done", *state, mood));
  }
  return state->queue.empty();
}

// ---- events ----------------------------------------------------------------

absl::StatusOr<CudaApi::Event> EmulatedCuda::CreateEvent() {
  RETURN_IF_ERROR(Begin({"CreateEvent"}));
  const int64_t number = next_handle_++;
  events_[number] = std::make_shared<EventState>();
  return reinterpret_cast<Event>(number);
}

void EmulatedCuda::DestroyEvent(Event event) {
  BeginDestroy({"DestroyEvent"});
  if (Needed(Number(event))) {
    errors_.push_back("DestroyEvent of an event that queued work needs");
  }
  if (events_.erase(Number(event)) == 0) {
    errors_.push_back("DestroyEvent of what is not an event");
  }
}

absl::Status EmulatedCuda::Record(Event event, Stream stream) {
  RETURN_IF_ERROR(Begin({.name = "Record", .stream = Number(stream)}, true));
  const auto found = events_.find(Number(event));
  if (found == events_.end()) {
    return CudaError("Record", kCudaInvalidHandle, "not an event");
  }
  Task task{.work = {.kind = "event record"}, .needs = Number(event)};
  const std::shared_ptr<EventState> state = found->second;
  task.work.run = [this, state, record = state->recorded + 1](uint64_t) {
    state->done = std::max(state->done, record);
    state->time = time_;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(Enqueue("Record", stream, std::move(task)));
  ++state->recorded;
  state->stream = Number(stream);
  return absl::OkStatus();
}

absl::Status EmulatedCuda::Wait(Stream stream, Event event) {
  RETURN_IF_ERROR(Begin({.name = "Wait", .stream = Number(stream)}, true));
  const auto found = events_.find(Number(event));
  if (found == events_.end()) {
    return CudaError("Wait", kCudaInvalidHandle, "not an event");
  }
  // An event that was not recorded is not waited for, nor a later record.
  const std::shared_ptr<EventState> state = found->second;
  Task task{.work = {.kind = "event wait"}, .needs = Number(event)};
  task.ready = [state, record = state->recorded] {
    return state->done >= record;
  };
  task.work.run = [](uint64_t) { return absl::OkStatus(); };
  return Enqueue("Wait", stream, std::move(task));
}

absl::Status EmulatedCuda::WaitOnHost(Event event) {
  RETURN_IF_ERROR(Begin({"WaitOnHost"}, true));
  const auto found = events_.find(Number(event));
  if (found == events_.end()) {
    return CudaError("WaitOnHost", kCudaInvalidHandle, "not an event");
  }
  const std::shared_ptr<EventState> state = found->second;
  while (state->done < state->recorded) {
    ASSIGN_OR_RETURN(
        StreamState * stream,
        Find("WaitOnHost", reinterpret_cast<Stream>(state->stream)));
    RETURN_IF_ERROR(RunTowards("WaitOnHost", *stream,
                               static_cast<int>(random_() % kNumMoods)));
  }
  return absl::OkStatus();
}

absl::StatusOr<float> EmulatedCuda::Elapsed(Event from, Event to) {
  RETURN_IF_ERROR(Begin({"Elapsed"}, true));
  for (const Event event : {from, to}) {
    const auto found = events_.find(Number(event));
    if (found == events_.end() || found->second->recorded == 0) {
      return CudaError("Elapsed", kCudaInvalidHandle, "not a recorded event");
    }
    if (found->second->done < found->second->recorded) {
      return CudaError("Elapsed", kCudaNotReady);
    }
  }
  const int64_t pieces =
      events_[Number(to)]->time - events_[Number(from)]->time;
  return static_cast<float>(pieces) * 1e-3f;
}

// ---- accounting ------------------------------------------------------------

absl::StatusOr<std::unique_ptr<CudaCallCounter>> EmulatedCuda::CountCalls() {
  class LogCounter final : public CudaCallCounter {
   public:
    explicit LogCounter(const CallLog& log)
        : log_(log), first_(log.calls().size()) {}
    std::vector<CudaCallStats> Stats() const override {
      std::map<std::string, int64_t> counts;
      for (size_t i = first_; i < log_.calls().size(); ++i) {
        ++counts[log_.calls()[i].name];
      }
      std::vector<CudaCallStats> stats;
      for (const auto& [call, calls] : counts)
        stats.push_back({call, calls, 0});
      return stats;
    }

   private:
    const CallLog& log_;
    const size_t first_;
  };
  return std::make_unique<LogCounter>(log_);
}

}  // namespace onestep
