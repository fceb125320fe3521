// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/data/idx.h"
#include "trainer/evaluate.h"
#include "trainer/json_text.h"
#include "trainer/load_data.h"
#include "trainer/model_file.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

struct Guess {
  int label = -1;
  float probability = 0;
};

// The `top` most probable classes of p[classes], the lower class first of
// equals. A row that is not finite has the guess -1 only.
std::vector<Guess> TopGuesses(const float* p, int64_t classes, int64_t top) {
  if (PredictedClass(p, classes) < 0) return {{-1, std::nanf("")}};
  std::vector<int> order(classes);
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(
      order.begin(), order.begin() + top, order.end(),
      [p](int a, int b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
  std::vector<Guess> guesses;
  for (int64_t i = 0; i < top; ++i) guesses.push_back({order[i], p[order[i]]});
  return guesses;
}

// Images without labels: the labels are 0, and nobody looks at the loss.
absl::StatusOr<Dataset> LoadImages(const Config& config, int64_t classes) {
  if (config.images.empty()) return LoadSubset(config, Subset::kTest, classes);
  ASSIGN_OR_RETURN(IdxImages images, ReadIdxImages(config.images));
  Dataset data;
  data.images = std::move(images.pixels);
  data.labels.resize(images.count);
  data.rows = images.count;
  data.features = images.rows * images.cols;
  data.image_rows = images.rows;
  data.image_cols = images.cols;
  data.classes = static_cast<int>(classes);
  data.source = config.images;
  return data;
}

}  // namespace

absl::Status RunPredict(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(LoadedModel loaded, ReadModel(config.model_file));
  const int64_t classes = loaded.model.classes();
  if (config.top > classes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--top: want at most the ", classes, " classes of ",
                     loaded.path, ", got ", config.top));
  }
  ASSIGN_OR_RETURN(const Dataset data, LoadImages(config, classes));
  RETURN_IF_ERROR(CheckFeatures(data, loaded));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Evaluator> evaluator,
      Evaluator::Create(loaded.model, config.compile, data, loaded.params,
                        {0, data.rows, /*keep_probabilities=*/true}));
  RETURN_IF_ERROR(evaluator->Run().status());

  Json predictions = Json::array();
  for (int64_t row = 0; row < data.rows; ++row) {
    const std::vector<Guess> guesses = TopGuesses(
        evaluator->probabilities().data() + row * classes, classes, config.top);
    if (config.json) {
      Json top = Json::array();
      for (const Guess& guess : guesses) {
        top.push_back(
            {{"label", guess.label}, {"probability", guess.probability}});
      }
      predictions.push_back({{"row", row}, {"top", top}});
      continue;
    }
    std::string line = absl::StrCat(row);
    for (const Guess& guess : guesses) {
      absl::StrAppendFormat(&line, "\t%d\t%.6f", guess.label,
                            guess.probability);
    }
    console.Print(line + "\n");
  }
  if (config.json) {
    Json json;
    json["model_file"] = loaded.path;
    json["images"] = data.source;
    json["predictions"] = std::move(predictions);
    console.Print(absl::StrCat(JsonText(json), "\n"));
  }
  return absl::OkStatus();
}

}  // namespace onestep
