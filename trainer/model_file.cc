// SPDX-License-Identifier: Apache-2.0
#include "trainer/model_file.h"

#include <algorithm>
#include <cfloat>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "trainer/checkpoint.h"
#include "trainer/config.h"
#include "trainer/finite.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

constexpr char kFormat[] = "onestep";

// Messages from here on go behind "<path>: ".
absl::StatusOr<std::string> Find(const Checkpoint& checkpoint,
                                 const std::string& key) {
  const auto found = checkpoint.metadata.find(key);
  if (found != checkpoint.metadata.end()) return found->second;
  return absl::DataLossError(
      absl::StrCat("metadata: want ", key, ", got none"));
}

template <typename E>
absl::StatusOr<E> FindChoice(const Checkpoint& checkpoint,
                             const std::string& key) {
  ASSIGN_OR_RETURN(const std::string text, Find(checkpoint, key));
  std::string want;
  for (const Named<E>& named : Names<E>()) {
    if (text == named.name) return named.value;
    absl::StrAppend(&want, want.empty() ? "" : "|", named.name);
  }
  return absl::DataLossError(
      absl::StrCat("metadata: ", key, ": want ", want, ", got ", Quote(text)));
}

absl::StatusOr<ModelSpec> ParseModel(const Checkpoint& checkpoint) {
  ModelSpec model;
  ASSIGN_OR_RETURN(const std::string format, Find(checkpoint, "format"));
  if (format != kFormat) {
    return absl::DataLossError(absl::StrCat("metadata: want format ", kFormat,
                                            ", got ", Quote(format)));
  }
  ASSIGN_OR_RETURN(const std::string text, Find(checkpoint, "model"));
  absl::StatusOr<std::vector<int64_t>> widths = ParseWidths(text);
  if (!widths.ok()) {
    return absl::DataLossError(
        absl::StrCat("metadata: model: ", widths.status().message()));
  }
  model.widths = *std::move(widths);
  ASSIGN_OR_RETURN(model.activation,
                   FindChoice<Activation>(checkpoint, "activation"));
  ASSIGN_OR_RETURN(model.loss, FindChoice<Loss>(checkpoint, "loss"));
  ASSIGN_OR_RETURN(const std::string scale, Find(checkpoint, "input_scale"));
  const absl::StatusOr<double> value = ParseNumber(scale, 0, FLT_MAX);
  if (!value.ok() || static_cast<float>(*value) != kInputScale) {
    return absl::DataLossError(absl::StrCat(
        "metadata: input_scale: want ", kInputScale, ", got ", Quote(scale)));
  }
  return model;
}

std::string Shape(const std::vector<int64_t>& dims) {
  return F32(dims).ToString();
}

// Copies the checkpoint's values into the params of the model, all of which
// must be there and nothing else.
absl::Status FillParams(const Checkpoint& checkpoint,
                        std::vector<Tensor>& params) {
  for (Tensor& param : params) {
    const auto found = std::find_if(
        checkpoint.tensors.begin(), checkpoint.tensors.end(),
        [&param](const NamedTensor& t) { return t.name == param.name; });
    const bool missing = found == checkpoint.tensors.end();
    if (missing || found->dims != param.dims) {
      return absl::DataLossError(
          absl::StrCat("tensor ", param.name, ": want ", Shape(param.dims),
                       ", got ", missing ? "none" : Shape(found->dims)));
    }
    if (!AllFinite(found->values.data(), param.num_elements())) {
      return absl::DataLossError(absl::StrCat(
          "tensor ", param.name, ": want finite values, got others"));
    }
    std::memcpy(param.data.data(), found->values.data(), param.data.bytes());
  }
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (std::none_of(params.begin(), params.end(), [&tensor](const Tensor& p) {
          return p.name == tensor.name;
        })) {
      return absl::DataLossError(
          absl::StrCat("tensor ", Quote(tensor.name), ": not of this model"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedModel> ToModel(const Checkpoint& checkpoint) {
  LoadedModel loaded;
  ASSIGN_OR_RETURN(loaded.model, ParseModel(checkpoint));
  // A wrong header must not make us ask for more memory than the file has.
  int64_t values = 0;
  for (const NamedTensor& t : checkpoint.tensors) values += t.values.size();
  if (loaded.model.num_parameters() != values) {
    return absl::DataLossError(absl::StrCat(
        "want ", loaded.model.num_parameters(), " parameters for model ",
        loaded.model.ToString(), ", got ", values));
  }
  ASSIGN_OR_RETURN(loaded.params, InitParams(loaded.model, Init::kXavier, 0));
  RETURN_IF_ERROR(FillParams(checkpoint, loaded.params));
  return loaded;
}

}  // namespace

absl::Status WriteModel(const std::string& path, const ModelSpec& model,
                        const std::vector<Tensor>& params,
                        const ModelOrigin& origin) {
  Checkpoint checkpoint;
  checkpoint.metadata = {
      {"format", kFormat},
      {"model", model.ToString()},
      {"activation", NameOf(model.activation)},
      {"loss", NameOf(model.loss)},
      {"input_scale", absl::StrFormat("%.9g", kInputScale)},
      {"classes", absl::StrCat(model.classes())},
      {"epoch", absl::StrCat(origin.epoch)},
      {"steps", absl::StrCat(origin.steps)},
      {"seed", absl::StrCat(origin.seed)},
  };
  for (const Tensor& param : params) {
    const float* const values = param.data.as<float>();
    checkpoint.tensors.push_back(
        {param.name, param.dims, {values, values + param.num_elements()}});
  }
  return WriteCheckpoint(path, checkpoint);
}

absl::StatusOr<LoadedModel> ReadModel(const std::string& path) {
  std::error_code ignored;
  std::string file = path;
  if (std::filesystem::is_directory(path, ignored)) {
    file = (std::filesystem::path(path) / kLastModelFile).string();
  }
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(file));
  absl::StatusOr<LoadedModel> loaded = ToModel(checkpoint);
  if (!loaded.ok()) {
    return absl::Status(loaded.status().code(),
                        absl::StrCat(file, ": ", loaded.status().message()));
  }
  loaded->path = file;
  return loaded;
}

absl::Status CheckFeatures(const Dataset& data, const LoadedModel& loaded) {
  if (data.features == loaded.model.features()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(data.source, ": want images of ", loaded.model.features(),
                   " pixels as in ", loaded.path, ", got ", data.image_rows,
                   "x", data.image_cols));
}

}  // namespace onestep
