// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/program_pool.h"

#include <algorithm>

#include "runtime/base/status.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

// Of one core, and of a step whatever its size: 784-128-10 by 32 rows takes 50
// to 100 us, a step of a few weights 1 to 2 (Zen 5, AVX-512).
constexpr double kFlopsPerUs = 1e5;
constexpr double kLeastStepUs = 1;

}  // namespace

double EstimatedStepUs(const Trial& trial) {
  return kLeastStepUs + TextbookFlops(trial.model, trial.batch) / kFlopsPerUs;
}

ProgramSet::ProgramSet(BundleProgram first, Compiler compile)
    : compile_(std::move(compile)) {
  programs_.push_back(std::move(first));
  free_.push_back(&programs_.back());
}

absl::StatusOr<ProgramSet::Lease> ProgramSet::Take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      BundleProgram* const program = free_.back();
      free_.pop_back();
      return Lease(program, {this});
    }
  }
  ASSIGN_OR_RETURN(BundleProgram made, compile_());
  const std::lock_guard<std::mutex> lock(mutex_);
  programs_.push_back(std::move(made));
  return Lease(&programs_.back(), {this});
}

void ProgramSet::Trim(int64_t programs) {
  CHECK(free_.size() == programs_.size() && programs >= 1);
  free_.clear();
  while (std::ssize(programs_) > programs) programs_.pop_back();
  for (BundleProgram& program : programs_) free_.push_back(&program);
}

void ProgramSet::Return::operator()(BundleProgram* program) const {
  const std::lock_guard<std::mutex> lock(set->mutex_);
  set->free_.push_back(program);
}

absl::StatusOr<ProgramSet*> ProgramPool::Get(const Trial& trial, int64_t models,
                                             bool sparse) {
  auto& sets = sets_[KindOf(trial)];
  const auto found = sets.find({models, sparse});
  if (found != sets.end()) return found->second.get();
  CompileOptions compile = compile_;
  if (sparse) compile.sparse = {std::max<int64_t>(1, nonzeros_)};
  ASSIGN_OR_RETURN(
      BundleProgram first,
      BundleProgram::Create(compile, trial, models, data_, plan_, order_));
  compile.dump_dir.clear();
  compile_.dump_dir.clear();  // it shows the first program
  auto set = std::make_unique<ProgramSet>(std::move(first), [this, compile,
                                                             trial, models] {
    return BundleProgram::Create(compile, trial, models, data_, plan_, order_);
  });
  const double us = static_cast<double>(models) * EstimatedStepUs(trial);
  set->step_us = us;
  set->chunk_us = us * RowPlan::kChunk / static_cast<double>(trial.batch);
  return (sets[{models, sparse}] = std::move(set)).get();
}

void ProgramPool::Forget(const ProgramSet& set) {
  for (auto& [kind, sets] : sets_) {
    std::erase_if(sets,
                  [&](const auto& of) { return of.second.get() == &set; });
  }
}

void ProgramPool::KeepKinds(const std::set<std::string>& kinds) {
  std::erase_if(sets_,
                [&](const auto& of) { return !kinds.contains(of.first); });
}

int64_t ProgramPool::sets() const {
  int64_t count = 0;
  for (const auto& [kind, sets] : sets_) count += std::ssize(sets);
  return count;
}

}  // namespace onestep
