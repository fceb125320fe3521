// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_DATA_DATASET_H_
#define ONESTEP_TRAINER_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace onestep {

enum class Subset { kTrain, kTest };

// Labelled images, all in memory. Every label is in [0, classes).
struct Dataset {
  std::vector<uint8_t> images;  // [rows, features], row-major pixels
  std::vector<int32_t> labels;  // [rows]
  int64_t rows = 0;
  int64_t features = 0;  // image_rows * image_cols
  int64_t image_rows = 0;
  int64_t image_cols = 0;
  int classes = 0;
  std::string source;  // for people: the images' file, or what made them
};

// Reads the images and labels of a subset from `dir`, which holds them as
//   train-images-idx3-ubyte  train-labels-idx1-ubyte
//   t10k-images-idx3-ubyte   t10k-labels-idx1-ubyte   (or test-...)
// where a dot may stand for the dash before idx. Each may be gzipped and
// named .gz; of several that fit, the first is read: dash, dash .gz, dot,
// dot .gz.
//
// NotFound, naming what was looked for, when a file is missing or cannot be
// read; DataLoss for a corrupt file, for counts of images and labels that
// differ, and for a label outside [0, classes), naming file and row.
absl::StatusOr<Dataset> LoadIdxDirectory(const std::string& dir, Subset subset,
                                         int classes);

// Debian's package dataset-fashion-mnist.
inline constexpr char kFashionMnistDirectory[] =
    "/usr/share/datasets/fashion-mnist";

// Where the data is: `flag`, else $ONESTEP_DATA, else ./data, else
// kFashionMnistDirectory; empty when there is none, and then the built-in set
// is meant (synthetic.h). An empty flag or variable is one that was not given.
// A directory that was given but is not there is NotFound; the other two count
// only when they hold training images.
absl::StatusOr<std::string> ResolveDataDirectory(const std::string& flag);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_DATA_DATASET_H_
