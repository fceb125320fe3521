// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_EVALUATE_H_
#define ONESTEP_TRAINER_EVALUATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/data/dataset.h"
#include "trainer/model.h"

namespace onestep {

struct EvalResult {
  int64_t rows = 0;
  double loss = 0;      // mean over the rows
  double accuracy = 0;  // in [0, 1]
};

// Evaluates a model on rows [begin, begin + rows) of a data set, in chunks of
// up to 1024 rows and a compiled step for what is left. `data` and `params`
// must outlive it; Run reads the params as they are then.
class Evaluator {
 public:
  struct Options {
    int64_t begin = 0;
    int64_t rows = 0;
    bool keep_probabilities = false;
  };

  // Compiles. Needs no labels in `data` when the result is not looked at.
  static absl::StatusOr<std::unique_ptr<Evaluator>> Create(
      const ModelSpec& model, const CompileOptions& compile,
      const Dataset& data, std::vector<Tensor>& params, const Options& options);

  // REQUIRES: rows > 0.
  absl::StatusOr<EvalResult> Run();

  // f32[rows, classes] of the last Run, when they were to be kept.
  const std::vector<float>& probabilities() const { return probabilities_; }
  double compile_ms() const { return compile_ms_; }

 private:
  struct Part {
    int64_t batch = 0;
    Compiled compiled;
  };

  Evaluator() = default;
  absl::Status RunPart(Part& part, int64_t first_row, int64_t chunks);

  int64_t classes_ = 0;
  Options options_;
  std::vector<Part> parts_;  // whole chunks, then the tail, as there are
  std::vector<int32_t> indices_;
  std::vector<float> losses_, corrects_;  // of the chunks of one part
  std::vector<float> probabilities_;
  double compile_ms_ = 0;
};

// The column of the largest of p[classes], the first of equals; -1 when a
// value is not finite.
int PredictedClass(const float* p, int64_t classes);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_EVALUATE_H_
