// SPDX-License-Identifier: Apache-2.0
// From a model specification to the graphs that train and evaluate it.
//
// Leaves of the graphs, by name:
//   images u8[rows,features], labels i32[rows], indices i32[batch]  the batch
//   lr f32[], step f32[] (adam only; counts from 1)                 scalars
//   momentum f32[], weight_decay f32[]           those that are hyper_inputs
//   w1 f32[in,out], b1 f32[out], w2, b2, ...                        params
//   w1.v ... (momentum), w1.m, w1.v ... (adam)            optimizer state
// Results: loss f32[] (mean over the batch), correct f32[] (rows); evaluation
// also has probabilities f32[batch,classes].
#ifndef ONESTEP_TRAINER_MODEL_H_
#define ONESTEP_TRAINER_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/compiler.h"
#include "runtime/base/buffer.h"
#include "trainer/optimizer.h"

namespace onestep {

struct ModelSpec {
  std::vector<int64_t> widths;  // features, hidden ..., classes
  Activation activation = Activation::kRelu;
  Loss loss = Loss::kSoftmaxXent;

  int64_t features() const { return widths.front(); }
  int64_t classes() const { return widths.back(); }
  int layers() const { return static_cast<int>(widths.size()) - 1; }
  int64_t num_parameters() const;
  std::string ToString() const;  // "784-128-10"
};

// "784-128-10" -> widths. InvalidArgument: want widths joined by `-`, at
// least two, each from 1 to 2^24, and at most 2^28 parameters in all.
absl::StatusOr<std::vector<int64_t>> ParseWidths(absl::string_view text);

// The inputs that hyper_inputs makes, in the order of the update's operands.
std::vector<std::string> HyperInputs(const OptimizerSpec& optimizer);

enum class Init : uint8_t { kHe, kXavier };

// Pixels are scaled by this on their way into the first layer.
inline constexpr float kInputScale = 1.0f / 255.0f;

// The textbook train step over a table of `rows` images: forward, loss,
// backward, one update per param. REQUIRES: batch >= 1.
absl::StatusOr<Graph> BuildTrainStep(const ModelSpec& model,
                                     const OptimizerSpec& optimizer,
                                     int64_t rows, int64_t batch);

// Forward, loss, count and probabilities of `batch` rows of the table.
absl::StatusOr<Graph> BuildEvalStep(const ModelSpec& model, int64_t rows,
                                    int64_t batch);

// A named tensor f32 that lives outside the executables.
struct Tensor {
  std::string name;
  std::vector<int64_t> dims;
  Buffer data;

  int64_t num_elements() const { return F32(dims).num_elements(); }
};

// The params of `model`, weights drawn from the seed (He: normal with
// variance 2 / fan_in; Xavier: uniform in +-sqrt(6 / (fan_in + fan_out))),
// biases 0. Sources: He et al. 2015; Glorot and Bengio 2010.
absl::StatusOr<std::vector<Tensor>> InitParams(const ModelSpec& model,
                                               Init init, uint64_t seed);

// The optimizer's state for these params, zero.
absl::StatusOr<std::vector<Tensor>> InitOptimizerState(
    const ModelSpec& model, const OptimizerSpec& optimizer);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MODEL_H_
