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

// Shared memory through which workers exchange values. Every exchange has two
// separate buffers that steps use alternately, so that a worker may write the
// values of the next step while another one still reads those of this step. One
// barrier between writing and reading is then enough.
class ExchangeMemory {
 public:
  // bytes[e] is the size of exchange e.
  static absl::StatusOr<std::unique_ptr<ExchangeMemory>> Create(
      const std::vector<int64_t>& bytes);
  // The buffer of `exchange` in steps of this parity (0 or 1).
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

// One chain per worker, which a team runs in parallel. All steps of a Run
// execute without a return to the calling thread; exchanges and barriers are
// calls of the chains. During a Run each worker keeps its part of the params in
// private memory: it copies them in at the begin and back at the end. A single
// worker has no pieces and computes in the caller's memory.
class TeamProgram : public Executable {
 public:
  // A worker's part of a param: `outer` runs of `run` bytes. The first run
  // begins `begin` bytes after the start of the param; consecutive runs are
  // `stride` bytes apart.
  struct Piece {
    std::string name;
    int64_t outer, run, stride, begin;
    bool gives_back;  // this worker copies the part back after a Run
  };
  struct Worker {
    std::unique_ptr<Chain> chain;
    std::vector<Piece> pieces;
    std::vector<Buffer> memory;  // one per piece
    // For inputs and results that are split over the workers: the offset in
    // bytes of this worker's part in the memory that the caller binds.
    std::map<std::string, int64_t, std::less<>> offsets;
    // Private memory for results that only worker 0 writes to the bound memory;
    // later steps of this worker may read them.
    std::map<std::string, Buffer, std::less<>> results;
  };

  // REQUIRES: workers.size() == team->workers().
  TeamProgram(std::shared_ptr<Team> team,
              std::unique_ptr<ExchangeMemory> exchanges,
              std::vector<Worker> workers, std::string lowering,
              std::string plan);

  absl::Status Bind(absl::string_view name, void* data,
                    int64_t stride_bytes = 0, int64_t steps = 0) override;
  absl::Status Run(int64_t n) override;
  absl::Status RunTraced(int64_t n, StepTrace& trace) override;
  // The steps of worker 0.
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
  // Copies the params in, calls run(w) for every worker w in parallel, and
  // copies the params back.
  absl::Status RunWorkers(absl::FunctionRef<absl::Status(int worker)> run);
  // Copies params from the caller's memory to the worker's, or back.
  void Move(Worker& worker, bool in) const;

  std::shared_ptr<Team> team_;
  std::unique_ptr<ExchangeMemory> exchanges_;
  std::vector<Worker> workers_;
  std::vector<absl::Status> status_;                  // by worker
  std::map<std::string, char*, std::less<>> params_;  // bound memory, or null
  std::string lowering_, plan_;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_TEAM_PROGRAM_H_
