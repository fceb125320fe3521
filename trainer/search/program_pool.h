// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_PROGRAM_POOL_H_
#define ONESTEP_TRAINER_SEARCH_PROGRAM_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/data/dataset.h"
#include "trainer/search/bundle.h"
#include "trainer/search/bundle_program.h"

namespace onestep {

// Microseconds that a step of the trial may take on one core of a CPU, from its
// shapes alone; within a few times.
double EstimatedStepUs(const Trial& trial);

// The programs that train bundles of one size and kind: as many as are in use
// at a time, and one at least.
class ProgramSet {
 public:
  using Compiler = std::function<absl::StatusOr<BundleProgram>()>;

  // `compile` makes the others, in any thread.
  ProgramSet(BundleProgram first, Compiler compile);

  // Any of them, and how many. REQUIRES: no thread takes one meanwhile.
  const BundleProgram& program() const { return programs_.front(); }
  int64_t programs() const { return std::ssize(programs_); }

  // A program that nobody else has until the lease ends; one more is compiled
  // where all are in use. From any thread.
  struct Return {
    ProgramSet* set;
    void operator()(BundleProgram* program) const;
  };
  using Lease = std::unique_ptr<BundleProgram, Return>;
  absl::StatusOr<Lease> Take();
  // Leaves `programs` at most. REQUIRES: none is in use, programs >= 1.
  void Trim(int64_t programs);

  // Of a step, of a chunk of the evaluation: estimates, then measured.
  double step_us = 1, chunk_us = 1;

 private:
  const Compiler compile_;
  std::mutex mutex_;
  std::deque<BundleProgram> programs_;
  std::vector<BundleProgram*> free_;
};

// Compiles programs when they are first asked for, and keeps them.
class ProgramPool {
 public:
  // `nonzeros` of the data; see SparseInput. The references outlive the pool.
  ProgramPool(CompileOptions compile, int64_t nonzeros, const Dataset& data,
              const RowPlan& plan, const RowOrder& order)
      : compile_(std::move(compile)),
        nonzeros_(nonzeros),
        data_(data),
        plan_(plan),
        order_(order) {}

  // For `models` trials of this one's kind.
  absl::StatusOr<ProgramSet*> Get(const Trial& trial, int64_t models,
                                  bool sparse);
  // These end a set, those of all other kinds. REQUIRES: none is in use.
  void Forget(const ProgramSet& set);
  void KeepKinds(const std::set<std::string>& kinds);
  int64_t sets() const;

 private:
  CompileOptions compile_;
  const int64_t nonzeros_;
  const Dataset& data_;
  const RowPlan& plan_;
  const RowOrder& order_;
  // By kind, then by models and input.
  std::map<std::string,
           std::map<std::pair<int64_t, bool>, std::unique_ptr<ProgramSet>>>
      sets_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_PROGRAM_POOL_H_
