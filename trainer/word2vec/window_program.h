// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_WINDOW_PROGRAM_H_
#define ONESTEP_TRAINER_WORD2VEC_WINDOW_PROGRAM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/word2vec/step_block.h"
#include "trainer/word2vec/window_sampler.h"

namespace onestep {

// The step of a window, compiled, for one thread.
class WindowProgram {
 public:
  // For tables of these numbers of rows of `cols` values.
  static absl::StatusOr<WindowProgram> Create(const SamplerSource& source,
                                              int64_t in_rows, int64_t out_rows,
                                              int64_t cols,
                                              const CompileOptions& options);

  // The tables that Run trains.
  absl::Status BindTables(float* in, float* out);
  // All steps of the block, one after another; fills its losses.
  absl::Status Run(StepBlock& block, float lr);

  const Compiled& compiled() const { return compiled_; }

 private:
  WindowProgram(const SamplerSource& source, Compiled compiled);

  bool cbow_, hs_;
  Compiled compiled_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WINDOW_PROGRAM_H_
