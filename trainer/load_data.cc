// SPDX-License-Identifier: Apache-2.0
#include "trainer/load_data.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/console.h"
#include "trainer/data/synthetic.h"

namespace onestep {
namespace {

// Not the run's seed: other weights should not mean other data.
constexpr uint64_t kBuiltInSeed = 1;

Dataset BuiltInData(Subset subset) {
  static bool said = false;
  if (!std::exchange(said, true)) {
    Console::Notice(
        "no data found, using the built-in pictures of digits; --data DIR "
        "names a folder of IDX files");
  }
  return SyntheticDigits(subset, kBuiltInSeed);
}

int CountClasses(const Dataset& data) {
  return 1 + *std::max_element(data.labels.begin(), data.labels.end());
}

std::string ImageSize(const Dataset& data) {
  return absl::StrCat(data.image_rows, "x", data.image_cols);
}

}  // namespace

absl::StatusOr<Dataset> LoadSubset(const Config& config, Subset subset,
                                   int64_t classes) {
  ASSIGN_OR_RETURN(const std::string dir, ResolveDataDirectory(config.data));
  if (!dir.empty()) {
    return LoadIdxDirectory(dir, subset, static_cast<int>(classes));
  }
  Dataset data = BuiltInData(subset);
  if (data.classes > classes) {
    return absl::DataLossError(absl::StrCat(data.source, ": want labels in 0..",
                                            classes - 1, ", got ", data.classes,
                                            " classes"));
  }
  return data;
}

absl::StatusOr<TrainingData> LoadTrainingData(Config& config) {
  ModelSpec& model = config.model;
  const bool counts = config.verb == Verb::kSearch;
  int64_t classes = counts                 ? kMostClasses
                    : model.widths.empty() ? kDefaultClasses
                                           : model.classes();
  TrainingData data;
  ASSIGN_OR_RETURN(data.train, LoadSubset(config, Subset::kTrain, classes));
  ASSIGN_OR_RETURN(data.test, LoadSubset(config, Subset::kTest, classes));
  if (counts) {
    classes = data.train.classes = data.test.classes =
        std::max(CountClasses(data.train), CountClasses(data.test));
  }
  if (data.test.features != data.train.features) {
    return absl::DataLossError(absl::StrCat(
        data.test.source, ": want images of ", ImageSize(data.train), " as in ",
        data.train.source, ", got ", ImageSize(data.test)));
  }
  if (model.widths.empty()) {
    model.widths = {data.train.features, 128, classes};
  }
  if (model.features() != data.train.features) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--model: want ", data.train.features, " as the first width for the ",
        ImageSize(data.train), " images of ", data.train.source, ", got ",
        model.features()));
  }
  absl::StatusOr<Split> split = SplitRows(data.train.rows, config.validation);
  if (!split.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--validation: ", split.status().message()));
  }
  data.split = *split;
  ASSIGN_OR_RETURN(config.data, ResolveDataDirectory(config.data));
  if (config.data.empty()) config.data = data.train.source;
  return data;
}

}  // namespace onestep
