// SPDX-License-Identifier: Apache-2.0
// A trained model as a checkpoint: its params as tensors w1, b1, ..., and in
// the metadata, as text, what else is needed to use it:
//   format "onestep", model "784-128-10", activation, loss (the words of the
//   flags), input_scale, classes, epoch, steps, seed
#ifndef ONESTEP_TRAINER_MODEL_FILE_H_
#define ONESTEP_TRAINER_MODEL_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/data/dataset.h"
#include "trainer/model.h"

namespace onestep {

inline constexpr char kLastModelFile[] = "model.safetensors";
inline constexpr char kBestModelFile[] = "best.safetensors";

// How far the training was.
struct ModelOrigin {
  int64_t epoch = 0;  // whole ones
  int64_t steps = 0;
  uint64_t seed = 0;
};

// FailedPrecondition when the file cannot be written.
absl::Status WriteModel(const std::string& path, const ModelSpec& model,
                        const std::vector<Tensor>& params,
                        const ModelOrigin& origin);

struct LoadedModel {
  std::string path;  // of the file
  ModelSpec model;
  std::vector<Tensor> params;
};

// `path` is a model file or a folder with kLastModelFile. NotFound when there
// is none; DataLoss, with file and tensor or key, when it is no model of ours
// or not whole.
absl::StatusOr<LoadedModel> ReadModel(const std::string& path);

// DataLoss when the images are not of the size that the model was trained on.
absl::Status CheckFeatures(const Dataset& data, const LoadedModel& loaded);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MODEL_FILE_H_
