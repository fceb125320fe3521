// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/window_program.h"

#include <utility>

#include "runtime/base/status.h"
#include "trainer/word2vec/window_graph.h"

namespace onestep {

WindowProgram::WindowProgram(const SamplerSource& source, Compiled compiled)
    : cbow_(source.config->cbow),
      hs_(source.config->hs),
      compiled_(std::move(compiled)) {}

absl::StatusOr<WindowProgram> WindowProgram::Create(
    const SamplerSource& source, int64_t in_rows, int64_t out_rows,
    int64_t cols, const CompileOptions& options) {
  WindowSpec spec;
  spec.cbow = source.config->cbow;
  spec.hs = source.config->hs;
  spec.in_rows = in_rows;
  spec.out_rows = out_rows;
  spec.cols = cols;
  spec.contexts = source.contexts();
  spec.outputs = source.outputs();
  ASSIGN_OR_RETURN(Graph graph, BuildWindowStep(spec));
  ASSIGN_OR_RETURN(Compiled compiled, Compile(std::move(graph), options));
  return WindowProgram(source, std::move(compiled));
}

absl::Status WindowProgram::BindTables(float* in, float* out) {
  RETURN_IF_ERROR(compiled_.executable->Bind("in", in));
  return compiled_.executable->Bind("out", out);
}

absl::Status WindowProgram::Run(StepBlock& block, float lr) {
  Executable& step = *compiled_.executable;
  const int64_t contexts = 4 * block.num_contexts;
  const int64_t outputs = 4 * block.num_outputs;
  RETURN_IF_ERROR(step.Bind("contexts", block.contexts.data(), contexts));
  if (cbow_) {
    RETURN_IF_ERROR(step.Bind("context_mean", block.mask.data(), contexts));
    RETURN_IF_ERROR(step.Bind("context_spread", block.spread.data(), contexts));
  } else {
    RETURN_IF_ERROR(step.Bind("context_mask", block.mask.data(), contexts));
  }
  RETURN_IF_ERROR(step.Bind("outputs", block.outputs.data(), outputs));
  RETURN_IF_ERROR(step.Bind("output_weights", block.weights.data(), outputs));
  if (hs_) RETURN_IF_ERROR(step.Bind("labels", block.labels.data(), outputs));
  RETURN_IF_ERROR(step.Bind("lr", &lr));
  RETURN_IF_ERROR(step.Bind("loss", block.loss.data(), 4));
  return step.Run(block.steps);
}

}  // namespace onestep
