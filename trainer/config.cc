// SPDX-License-Identifier: Apache-2.0
#include "trainer/config.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "trainer/numbers.h"

namespace onestep {

template <>
const std::vector<Named<bool>>& Names() {
  static const std::vector<Named<bool>> names = {{"on", true}, {"off", false}};
  return names;
}

template <>
const std::vector<Named<Verb>>& Names() {
  static const std::vector<Named<Verb>> names = {
      {"train", Verb::kTrain},
      {"eval", Verb::kEval},
      {"predict", Verb::kPredict},
      {"graph", Verb::kGraph},
      {"bench", Verb::kBench},
      {"info", Verb::kInfo},
      {"probe", Verb::kProbe},
      {"profile", Verb::kProfile},
      {"sweep", Verb::kSweep},
      {"advise", Verb::kAdvise},
      {"search", Verb::kSearch},
      {"nearest", Verb::kNearest},
      {"analogy", Verb::kAnalogy},
      {"word2vec", Verb::kWord2vec},
      {"word2vec-eval", Verb::kWord2vecEval}};
  return names;
}

template <>
const std::vector<Named<CbowGradient>>& Names() {
  static const std::vector<Named<CbowGradient>> names = {
      {"word2vec", CbowGradient::kWord2vec}, {"exact", CbowGradient::kExact}};
  return names;
}

template <>
const std::vector<Named<VectorsFormat>>& Names() {
  static const std::vector<Named<VectorsFormat>> names = {
      {"binary", VectorsFormat::kBinary},
      {"text", VectorsFormat::kText},
      {"safetensors", VectorsFormat::kSafetensors}};
  return names;
}

template <>
const std::vector<Named<GraphFormat>>& Names() {
  static const std::vector<Named<GraphFormat>> names = {
      {"text", GraphFormat::kText},
      {"dot", GraphFormat::kDot},
      {"svg", GraphFormat::kSvg}};
  return names;
}

template <>
const std::vector<Named<WindowModel>>& Names() {
  static const std::vector<Named<WindowModel>> names = {
      {"none", WindowModel::kNone},
      {"skipgram", WindowModel::kSkipGram},
      {"hs", WindowModel::kHs},
      {"cbow", WindowModel::kCbow},
      {"cbow-hs", WindowModel::kCbowHs}};
  return names;
}

template <>
const std::vector<Named<Subset>>& Names() {
  static const std::vector<Named<Subset>> names = {{"train", Subset::kTrain},
                                                   {"test", Subset::kTest}};
  return names;
}

template <>
const std::vector<Named<Activation>>& Names() {
  static const auto* const names = [] {
    auto* all = new std::vector<Named<Activation>>;
    for (Activation a : kAllActivations) all->push_back({ToString(a), a});
    return all;
  }();
  return *names;
}

template <>
const std::vector<Named<Loss>>& Names() {
  static const std::vector<Named<Loss>> names = {
      {"cross-entropy", Loss::kSoftmaxXent}, {"mse", Loss::kMse}};
  return names;
}

template <>
const std::vector<Named<Init>>& Names() {
  static const std::vector<Named<Init>> names = {{"he", Init::kHe},
                                                 {"xavier", Init::kXavier}};
  return names;
}

template <>
const std::vector<Named<OptimizerKind>>& Names() {
  static const std::vector<Named<OptimizerKind>> names = [] {
    std::vector<Named<OptimizerKind>> all;
    for (const Optimizer& row : AllOptimizers()) {
      all.push_back({row.name, row.kind});
    }
    return all;
  }();
  return names;
}

template <>
const std::vector<Named<ScheduleKind>>& Names() {
  static const std::vector<Named<ScheduleKind>> names = {
      {"constant", ScheduleKind::kConstant},
      {"cosine", ScheduleKind::kCosine},
      {"step", ScheduleKind::kStep}};
  return names;
}

template <>
const std::vector<Named<Device>>& Names() {
  static const std::vector<Named<Device>> names = {{"cpu", Device::kCpu},
                                                   {"gpu", Device::kGpu}};
  return names;
}

template <>
const std::vector<Named<Dispatch>>& Names() {
  static const std::vector<Named<Dispatch>> names = {
      {"auto", Dispatch::kAuto},
      {"ops", Dispatch::kOps},
      {"graph", Dispatch::kGraph},
      {"single", Dispatch::kSingle}};
  return names;
}

template <>
const std::vector<Named<Kernels>>& Names() {
  static const std::vector<Named<Kernels>> names = {
      {"auto", Kernels::kAuto},
      {"onednn", Kernels::kOnednn},
      {"loops", Kernels::kLoops}};
  return names;
}

template <>
const std::vector<Named<InputMode>>& Names() {
  static const std::vector<Named<InputMode>> names = {
      {"auto", InputMode::kAuto},
      {"dense", InputMode::kDense},
      {"sparse", InputMode::kSparse}};
  return names;
}

template <>
const std::vector<Named<MathMode>>& Names() {
  static const std::vector<Named<MathMode>> names = {{"fp32", MathMode::kFp32},
                                                     {"tf32", MathMode::kTf32},
                                                     {"bf16", MathMode::kBf16}};
  return names;
}

template <>
const std::vector<Named<CudaTier>>& Names() {
  static const std::vector<Named<CudaTier>> names = {
      {"auto", CudaTier::kAuto},
      {"library", CudaTier::kLibrary},
      {"fused", CudaTier::kFused},
      {"persistent", CudaTier::kPersistent}};
  return names;
}

template <>
const std::vector<Named<CudaFirstLayer>>& Names() {
  static const std::vector<Named<CudaFirstLayer>> names = {
      {"auto", CudaFirstLayer::kAuto},
      {"fma", CudaFirstLayer::kFma},
      {"split", CudaFirstLayer::kSplit}};
  return names;
}

template <>
const std::vector<Named<Sample>>& Names() {
  static const std::vector<Named<Sample>> names = {{"grid", Sample::kGrid},
                                                   {"random", Sample::kRandom}};
  return names;
}

template <>
const std::vector<Named<Grouping>>& Names() {
  static const std::vector<Named<Grouping>> names = {
      {"auto", Grouping::kAuto},
      {"vector", Grouping::kVector},
      {"loop", Grouping::kLoop}};
  return names;
}

template <>
const std::vector<Named<EarlyStop>>& Names() {
  static const std::vector<Named<EarlyStop>> names = {
      {"none", EarlyStop::kNone}, {"asha", EarlyStop::kAsha}};
  return names;
}

template <>
const std::vector<Named<SearchMetric>>& Names() {
  static const std::vector<Named<SearchMetric>> names = {
      {"loss", SearchMetric::kLoss}, {"accuracy", SearchMetric::kAccuracy}};
  return names;
}

nlohmann::ordered_json ConfigToJson(const Config& config) {
  nlohmann::ordered_json json;
  json["data"] = config.data;
  json["validation"] = config.validation;
  json["model"] = config.model.ToString();
  json["activation"] = NameOf(config.model.activation);
  json["loss"] = NameOf(config.model.loss);
  json["init"] = NameOf(config.init);
  json["optimizer"] = NameOf(config.optimizer.kind);
  if (config.optimizer.kind == OptimizerKind::kMomentum) {
    json["momentum"] = AsWritten(config.optimizer.momentum);
    json["nesterov"] = config.optimizer.nesterov;
  }
  json["weight_decay"] = AsWritten(config.optimizer.weight_decay);
  json["lr"] = config.lr;
  json["lr_schedule"] = NameOf(config.lr_schedule);
  json["warmup"] = config.warmup;
  json["batch"] = config.batch;
  json["epochs"] = config.epochs;
  json["patience"] = config.patience;
  json["seed"] = config.seed;
  json["shuffle_seed"] = config.shuffle_seed.value_or(config.seed);
  json["device"] = NameOf(config.compile.device);
  json["fuse"] = NameOf(config.compile.fuse);
  json["dispatch"] = NameOf(config.compile.dispatch);
  json["kernels"] = NameOf(config.compile.kernels);
  if (config.compile.device == Device::kGpu) {
    const CudaOptions& cuda = config.compile.cuda;
    json["math"] = NameOf(cuda.math);
    json["tier"] = NameOf(cuda.tier);
    json["first_layer"] = NameOf(cuda.first_layer);
    if (cuda.steps_per_launch > 0) {
      json["steps_per_launch"] = cuda.steps_per_launch;
    }
  }
  json["threads"] = config.compile.threads;
  if (config.compile.affinity.kind != Affinity::kNone) {
    json["affinity"] = ToString(config.compile.affinity);
  }
  json["input"] = NameOf(config.input);
  json["disable_pass"] = config.compile.disabled_passes;
  if (!config.out.empty()) json["out"] = config.out;
  return json;
}

std::string FlagTable(const nlohmann::ordered_json& flags) {
  std::string table;
  for (const auto& [key, value] : flags.items()) {
    std::string text =
        value.is_string() ? value.get<std::string>()
        : value.is_array()
            ? absl::StrJoin(value.get<std::vector<std::string>>(), ",")
            : value.dump();
    if (text.empty()) continue;
    absl::StrAppendFormat(&table, "  %-13s %s\n", key, text);
  }
  return table;
}

std::string ConfigTable(const Config& config) {
  return FlagTable(ConfigToJson(config));
}

}  // namespace onestep
