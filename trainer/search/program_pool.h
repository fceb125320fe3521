// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_PROGRAM_POOL_H_
#define ONESTEP_TRAINER_SEARCH_PROGRAM_POOL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/data/dataset.h"
#include "trainer/search/bundle.h"
#include "trainer/search/bundle_program.h"

namespace onestep {

// The program that trains bundles of one size and kind, once for each worker.
struct ProgramSet {
  std::vector<BundleProgram> of_worker;
  // Of a step, of a chunk of the evaluation: estimates, then measured.
  double step_us = 1, chunk_us = 1;
};

// Compiles programs when they are first asked for, and keeps them.
class ProgramPool {
 public:
  // `nonzeros` of the data; see SparseInput. The references outlive the pool.
  ProgramPool(CompileOptions compile, int workers, int64_t nonzeros,
              const Dataset& data, const RowPlan& plan, const RowOrder& order)
      : compile_(std::move(compile)),
        workers_(workers),
        nonzeros_(nonzeros),
        data_(data),
        plan_(plan),
        order_(order) {}

  // For `models` trials of this one's kind. Lives as long as the pool.
  absl::StatusOr<ProgramSet*> Get(const Trial& trial, int64_t models,
                                  bool sparse);

 private:
  CompileOptions compile_;
  const int workers_;
  const int64_t nonzeros_;
  const Dataset& data_;
  const RowPlan& plan_;
  const RowOrder& order_;
  std::map<std::string, ProgramSet> sets_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_PROGRAM_POOL_H_
