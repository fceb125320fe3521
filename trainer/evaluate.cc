// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/status.h"
#include "trainer/bind.h"

namespace onestep {
namespace {

// Large enough for full speed, small enough that a chunk stays in the cache.
constexpr int64_t kChunkRows = 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(
    const ModelSpec& model, const CompileOptions& compile, const Dataset& data,
    std::vector<Tensor>& params, const Options& options) {
  std::unique_ptr<Evaluator> evaluator(new Evaluator);
  evaluator->classes_ = model.classes();
  evaluator->options_ = options;
  CompileOptions quiet = compile;
  quiet.dump_dir.clear();  // dumps show the train step
  quiet.sparse = {};
  quiet.cuda.tier = CudaTier::kAuto;
  const int64_t tail = options.rows % kChunkRows;
  for (const int64_t batch :
       {options.rows < kChunkRows ? 0 : kChunkRows, tail}) {
    if (batch == 0) continue;
    Part part;
    part.batch = batch;
    ASSIGN_OR_RETURN(Graph graph, BuildEvalStep(model, data.rows, batch));
    ASSIGN_OR_RETURN(part.compiled, Compile(std::move(graph), quiet));
    evaluator->compile_ms_ += part.compiled.ms;
    Executable& executable = *part.compiled.executable;
    RETURN_IF_ERROR(BindData(executable, data));
    RETURN_IF_ERROR(BindTensors(executable, params));
    evaluator->parts_.push_back(std::move(part));
  }
  evaluator->indices_.resize(options.rows);
  std::iota(evaluator->indices_.begin(), evaluator->indices_.end(),
            static_cast<int32_t>(options.begin));
  const int64_t chunks = options.rows / kChunkRows + 1;
  evaluator->losses_.resize(chunks);
  evaluator->corrects_.resize(chunks);
  if (options.keep_probabilities) {
    evaluator->probabilities_.resize(options.rows * model.classes());
  }
  return evaluator;
}

absl::Status Evaluator::RunPart(Part& part, int64_t first_row, int64_t chunks) {
  Executable& executable = *part.compiled.executable;
  executable.ParamsChanged();
  constexpr int64_t kFloat = sizeof(float);
  RETURN_IF_ERROR(executable.Bind("indices", indices_.data() + first_row,
                                  part.batch * sizeof(int32_t)));
  RETURN_IF_ERROR(executable.Bind("loss", losses_.data(), kFloat));
  RETURN_IF_ERROR(executable.Bind("correct", corrects_.data(), kFloat));
  if (options_.keep_probabilities) {
    RETURN_IF_ERROR(executable.Bind(
        "probabilities", probabilities_.data() + first_row * classes_,
        part.batch * classes_ * kFloat));
  }
  return executable.Run(chunks);
}

absl::StatusOr<EvalResult> Evaluator::Run() {
  CHECK(options_.rows > 0);
  EvalResult result;
  double correct = 0;
  for (Part& part : parts_) {
    const int64_t chunks = (options_.rows - result.rows) / part.batch;
    RETURN_IF_ERROR(RunPart(part, result.rows, chunks));
    for (int64_t i = 0; i < chunks; ++i) {
      result.loss += static_cast<double>(losses_[i]) * part.batch;
      correct += corrects_[i];
    }
    result.rows += chunks * part.batch;
  }
  result.loss /= static_cast<double>(result.rows);
  result.accuracy = correct / static_cast<double>(result.rows);
  return result;
}

int PredictedClass(const float* p, int64_t classes) {
  int best = 0;
  for (int c = 0; c < classes; ++c) {
    if (!std::isfinite(p[c])) return -1;
    if (p[c] > p[best]) best = c;
  }
  return best;
}

}  // namespace onestep
