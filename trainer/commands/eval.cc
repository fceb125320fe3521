// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/confusion.h"
#include "trainer/evaluate.h"
#include "trainer/json_text.h"
#include "trainer/load_data.h"
#include "trainer/model_file.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string ToText(const std::optional<double>& value) {
  return value ? absl::StrFormat("%.4f", *value) : "-";
}

Json ToJson(const Confusion& confusion) {
  Json classes = Json::array(), matrix = Json::array();
  for (int c = 0; c < confusion.classes(); ++c) {
    classes.push_back({{"class", c},
                       {"rows", confusion.RowsOf(c)},
                       {"precision", ToJson(confusion.Precision(c))},
                       {"recall", ToJson(confusion.Recall(c))}});
    Json row = Json::array();
    for (int p = 0; p < confusion.classes(); ++p) {
      row.push_back(confusion.count(c, p));
    }
    matrix.push_back(row);
  }
  return {{"classes", classes},
          {"confusion", matrix},
          {"without_prediction", confusion.without_prediction()}};
}

std::string ToText(const Confusion& confusion) {
  std::string text = "\nclass    rows  precision  recall\n";
  for (int c = 0; c < confusion.classes(); ++c) {
    absl::StrAppendFormat(&text, "%5d  %6d  %9s  %6s\n", c, confusion.RowsOf(c),
                          ToText(confusion.Precision(c)),
                          ToText(confusion.Recall(c)));
  }
  absl::StrAppend(&text,
                  "\nconfusion: a row per true class, a column per "
                  "predicted class\n     ");
  for (int c = 0; c < confusion.classes(); ++c) {
    absl::StrAppendFormat(&text, " %6d", c);
  }
  for (int c = 0; c < confusion.classes(); ++c) {
    absl::StrAppendFormat(&text, "\n%5d", c);
    for (int p = 0; p < confusion.classes(); ++p) {
      absl::StrAppendFormat(&text, " %6d", confusion.count(c, p));
    }
  }
  absl::StrAppend(&text, "\n");
  if (confusion.without_prediction() > 0) {
    absl::StrAppend(&text, confusion.without_prediction(),
                    " rows without a prediction: their outputs are not "
                    "finite\n");
  }
  return text;
}

}  // namespace

absl::Status RunEval(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(LoadedModel loaded, ReadModel(config.model_file));
  const ModelSpec& model = loaded.model;
  ASSIGN_OR_RETURN(const Dataset data,
                   LoadSubset(config, config.subset, model.classes()));
  RETURN_IF_ERROR(CheckFeatures(data, loaded));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Evaluator> evaluator,
      Evaluator::Create(model, config.compile, data, loaded.params,
                        {0, data.rows, /*keep_probabilities=*/true}));
  ASSIGN_OR_RETURN(const EvalResult result, evaluator->Run());
  Confusion confusion(model.classes());
  for (int64_t row = 0; row < data.rows; ++row) {
    const float* const p =
        evaluator->probabilities().data() + row * model.classes();
    confusion.Add(data.labels[row], PredictedClass(p, model.classes()));
  }

  if (!config.json) {
    console.Print(absl::StrFormat(
        "%s: %s, %s\naccuracy %.4f, loss %.4f (%d rows of %s)\n%s", loaded.path,
        model.ToString(), NameOf(model.activation), result.accuracy,
        result.loss, result.rows, data.source, ToText(confusion)));
    return absl::OkStatus();
  }
  Json json;
  json["model_file"] = loaded.path;
  json["model"] = model.ToString();
  json["data"] = data.source;
  json["subset"] = NameOf(config.subset);
  json["rows"] = result.rows;
  json["accuracy"] = result.accuracy;
  json["loss"] = result.loss;
  json.update(ToJson(confusion));
  console.Print(absl::StrCat(JsonText(json, 2), "\n"));
  return absl::OkStatus();
}

}  // namespace onestep
