// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/program_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/status.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

// Of one worker: for the order in which the first blocks are taken, no more.
constexpr double kFlopsPerUs = 3e4;

}  // namespace

absl::StatusOr<ProgramSet*> ProgramPool::Get(const Trial& trial, int64_t models,
                                             bool sparse) {
  std::string key = absl::StrCat(KindOf(trial), ", ", models, sparse);
  const auto found = sets_.find(key);
  if (found != sets_.end()) return &found->second;
  ProgramSet set;
  CompileOptions compile = compile_;
  if (sparse) compile.sparse = {std::max<int64_t>(1, nonzeros_)};
  for (int worker = 0; worker < workers_; ++worker) {
    ASSIGN_OR_RETURN(
        BundleProgram program,
        BundleProgram::Create(compile, trial, models, data_, plan_, order_));
    set.of_worker.push_back(std::move(program));
    compile.dump_dir.clear();
  }
  compile_.dump_dir.clear();  // it shows the first program
  const double flops = static_cast<double>(models) / kFlopsPerUs;
  set.step_us = flops * TextbookFlops(trial.model, trial.batch);
  set.chunk_us = flops * TextbookFlops(trial.model, RowPlan::kChunk);
  return &sets_.emplace(std::move(key), std::move(set)).first->second;
}

}  // namespace onestep
