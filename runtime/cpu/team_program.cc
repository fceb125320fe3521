// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/team_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {

absl::StatusOr<std::unique_ptr<ExchangeMemory>> ExchangeMemory::Create(
    const std::vector<int64_t>& bytes) {
  auto memory = std::make_unique<ExchangeMemory>();
  for (const int64_t b : bytes) {
    memory->offsets_.push_back(memory->stride_);
    memory->stride_ += AlignUp(b) / static_cast<int64_t>(sizeof(float));
  }
  ASSIGN_OR_RETURN(memory->memory_,
                   Buffer::Create(2 * memory->stride_ *
                                  static_cast<int64_t>(sizeof(float))));
  memory->data_ = memory->memory_.as<float>();
  return memory;
}

TeamProgram::TeamProgram(std::shared_ptr<Team> team,
                         std::unique_ptr<ExchangeMemory> exchanges,
                         std::vector<Worker> workers, std::string lowering,
                         std::string plan)
    : team_(std::move(team)),
      exchanges_(std::move(exchanges)),
      workers_(std::move(workers)),
      lowering_(std::move(lowering)),
      plan_(std::move(plan)) {
  CHECK(std::ssize(workers_) == team_->workers());
  status_.resize(workers_.size());
  for (Worker& worker : workers_) {
    for (size_t i = 0; i < worker.pieces.size(); ++i) {
      params_[worker.pieces[i].name] = nullptr;
      CHECK(
          worker.chain->Bind(worker.pieces[i].name, worker.memory[i].data(), 0)
              .ok());
    }
    for (auto& [name, memory] : worker.results) {
      CHECK(worker.chain->Bind(name, memory.data(), 0).ok());
    }
  }
}

absl::Status TeamProgram::Bind(absl::string_view name, void* data,
                               int64_t stride_bytes, int64_t steps) {
  if (const auto it = params_.find(name); it != params_.end()) {
    if (stride_bytes != 0) {
      return absl::UnimplementedError(
          absl::StrCat("bind: param ", name, " with a stride"));
    }
    it->second = static_cast<char*>(data);
    return absl::OkStatus();
  }
  for (Worker& worker : workers_) {
    if (worker.results.find(name) != worker.results.end()) continue;
    const auto offset = worker.offsets.find(name);
    char* const part = static_cast<char*>(data) +
                       (offset == worker.offsets.end() ? 0 : offset->second);
    RETURN_IF_ERROR(worker.chain->Bind(name, part, stride_bytes, steps));
  }
  return absl::OkStatus();
}

void TeamProgram::Move(Worker& worker, bool in) const {
  for (size_t i = 0; i < worker.pieces.size(); ++i) {
    const Piece& piece = worker.pieces[i];
    if (!in && !piece.gives_back) continue;
    char* local = worker.memory[i].as<char>();
    char* whole = params_.find(piece.name)->second + piece.begin;
    for (int64_t o = 0; o < piece.outer; ++o) {
      std::memcpy(in ? local : whole, in ? whole : local, piece.run);
      local += piece.run;
      whole += piece.stride;
    }
  }
}

absl::Status TeamProgram::CheckBound() const {
  for (const auto& [name, data] : params_) {
    if (data == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("run: ", name, " is not bound"));
    }
  }
  // If one chain could not run, the other workers would wait for it forever.
  for (const Worker& worker : workers_) {
    RETURN_IF_ERROR(worker.chain->CheckBound());
  }
  return absl::OkStatus();
}

absl::Status TeamProgram::RunWorkers(
    absl::FunctionRef<absl::Status(int worker)> run) {
  RETURN_IF_ERROR(CheckBound());
  team_->Run([&](int w) {
    Worker& worker = workers_[w];
    Move(worker, /*in=*/true);
    team_->barrier().Wait(w);  // all parts are read before any is written back
    status_[w] = run(w);
    Move(worker, /*in=*/false);
  });
  for (const absl::Status& status : status_) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status TeamProgram::Run(int64_t n) {
  return RunWorkers([&](int w) { return workers_[w].chain->Run(n); });
}

absl::Status TeamProgram::RunTraced(int64_t n, StepTrace& trace) {
  trace.steps = n;
  trace.workers.resize(workers_.size());
  for (int w = 0; w < workers(); ++w) {
    workers_[w].chain->PrepareTrace(n, trace.workers[w]);
  }
  TickScale scale;
  trace.begin = NowTicks();
  const absl::Status status = RunWorkers([&](int w) {
    StepTrace::Worker& worker = trace.workers[w];
    worker.begin = NowTicks();
    const absl::Status ran = workers_[w].chain->RunInto(n, worker);
    worker.end = NowTicks();
    return ran;
  });
  trace.end = NowTicks();
  scale.End();
  trace.TicksToNs(scale);
  return status;
}

int64_t TeamProgram::arena_bytes() const {
  int64_t bytes = exchanges_->bytes();
  for (const Worker& worker : workers_) bytes += worker.chain->arena_bytes();
  return bytes;
}

}  // namespace onestep
