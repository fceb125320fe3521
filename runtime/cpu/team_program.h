// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_TEAM_PROGRAM_H_
#define ONESTEP_RUNTIME_CPU_TEAM_PROGRAM_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/base/buffer.h"
#include "runtime/base/executable.h"
#include "runtime/cpu/chain.h"
#include "runtime/cpu/team.h"

namespace onestep {

// Memory through which workers give each other values. Every exchange has a
// place of its own, twice: steps use the two alternately, so that a worker
// may write the next step's while another still reads this step's. One
// barrier between writing and reading is then enough.
class ExchangeMemory {
 public:
  // `bytes` of each exchange.
  static absl::StatusOr<std::unique_ptr<ExchangeMemory>> Create(
      const std::vector<int64_t>& bytes);
  float* at(int exchange, int parity) const {
    return data_ + (parity * stride_ + offsets_[exchange]);
  }
  int64_t bytes() const { return memory_.bytes(); }

 private:
  Buffer memory_;
  float* data_ = nullptr;
  std::vector<int64_t> offsets_;  // in floats
  int64_t stride_ = 0;
};

// One chain per worker, run side by side by a team: steps follow each other
// without a return to the caller, and what is between the workers is calls
// of their chains. Params live in the workers' own memory while a Run lasts:
// each takes its part when it begins and gives it back when it ends. A worker
// alone has no pieces: it computes in the caller's memory.
class TeamProgram : public Executable {
 public:
  // A worker's part of a param: `outer` runs of `run` bytes, the first at
  // `begin` of the whole param, each `stride` after the one before.
  struct Piece {
    std::string name;
    int64_t outer, run, stride, begin;
    bool gives_back;  // this worker writes the part when a Run ends
  };
  struct Worker {
    std::unique_ptr<Chain> chain;
    std::vector<Piece> pieces;
    std::vector<Buffer> memory;  // one per piece
    // In bytes from what the caller binds to what is this worker's, for inputs
    // and results of which each worker has a part.
    std::map<std::string, int64_t, std::less<>> offsets;
    // Results that worker 0 alone gives out; the others' stay here, where
    // their own later steps may read them.
    std::map<std::string, Buffer, std::less<>> results;
  };

  // REQUIRES: as many workers as the team has.
  TeamProgram(std::shared_ptr<Team> team,
              std::unique_ptr<ExchangeMemory> exchanges,
              std::vector<Worker> workers, std::string lowering,
              std::string plan);

  absl::Status Bind(absl::string_view name, void* data,
                    int64_t stride_bytes = 0, int64_t steps = 0) override;
  absl::Status Run(int64_t n) override;
  absl::Status RunTraced(int64_t n, StepTrace& trace) override;
  // Of worker 0.
  const std::vector<StepInfo>& steps() const override {
    return workers_[0].chain->steps();
  }
  int workers() const override { return static_cast<int>(workers_.size()); }
  const std::vector<StepInfo>& WorkerSteps(int worker) const override {
    return workers_[worker].chain->steps();
  }
  std::string lowering() const override { return lowering_; }
  const std::string& plan() const override { return plan_; }
  int64_t arena_bytes() const override;
  int64_t dispatches() const override { return 1; }

 private:
  absl::Status CheckBound() const;
  // run(w) is the steps of worker w.
  absl::Status RunWorkers(absl::FunctionRef<absl::Status(int worker)> run);
  // Params between the caller's memory and the worker's own.
  void Move(Worker& worker, bool in) const;

  std::shared_ptr<Team> team_;
  std::unique_ptr<ExchangeMemory> exchanges_;
  std::vector<Worker> workers_;
  std::vector<absl::Status> status_;                  // of each worker's Run
  std::map<std::string, char*, std::less<>> params_;  // the caller's, or null
  std::string lowering_, plan_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_TEAM_PROGRAM_H_
