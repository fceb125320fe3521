// SPDX-License-Identifier: Apache-2.0
#include "trainer/model.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"
#include "trainer/data/random.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 24;
// 1 GiB of weights; a step reads all of them.
constexpr int64_t kMaxParameters = int64_t{1} << 28;
constexpr uint64_t kInitStream = uint64_t{3} << 32;  // see random.h

struct Layer {
  std::string w, b;  // names
  int64_t in = 0, out = 0;
};

std::vector<Layer> Layers(const ModelSpec& model) {
  std::vector<Layer> layers;
  for (int i = 0; i < model.layers(); ++i) {
    layers.push_back({absl::StrCat("w", i + 1), absl::StrCat("b", i + 1),
                      model.widths[i], model.widths[i + 1]});
  }
  return layers;
}

// Name and dims of each param, in layer order.
std::vector<std::pair<std::string, std::vector<int64_t>>> ParamShapes(
    const ModelSpec& model) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
  for (const Layer& layer : Layers(model)) {
    shapes.push_back({layer.w, {layer.in, layer.out}});
    shapes.push_back({layer.b, {layer.out}});
  }
  return shapes;
}

struct Leaves {
  Value images, labels, indices;
  std::vector<Value> params;
};

Leaves AddLeaves(Graph& graph, const ModelSpec& model, int64_t rows,
                 int64_t batch) {
  Leaves leaves;
  leaves.images =
      graph.AddInput("images", {DType::kU8, {rows, model.features()}});
  leaves.labels = graph.AddInput("labels", {DType::kI32, {rows}});
  leaves.indices = graph.AddInput("indices", {DType::kI32, {batch}});
  for (const auto& [name, dims] : ParamShapes(model)) {
    leaves.params.push_back(graph.AddParam(name, F32(dims)));
  }
  return leaves;
}

struct Forward {
  Value logits, loss;
};

// Up to the results loss and correct.
Forward AddForward(Graph& graph, const ModelSpec& model, const Leaves& leaves) {
  graph.set_phase(Phase::kForward);
  const Value pixels =
      graph.Add(OpKind::kGatherRows, {leaves.images, leaves.indices});
  const Value labels =
      graph.Add(OpKind::kGatherRows, {leaves.labels, leaves.indices});
  Value x = graph.Add(OpKind::kCast, {pixels});
  x = graph.Add(OpKind::kScale, {x}, ScaleAttrs{kInputScale});
  for (int i = 0; i < model.layers(); ++i) {
    x = graph.Add(OpKind::kMatMul, {x, leaves.params[2 * i]});
    x = graph.Add(OpKind::kAddBias, {x, leaves.params[2 * i + 1]});
    const bool hidden = i + 1 < model.layers();
    if (hidden && model.activation != Activation::kNone) {
      x = AddActivation(graph, model.activation, x);
    }
  }

  graph.set_phase(Phase::kLoss);
  Value loss;
  if (model.loss == Loss::kMse) {
    const Value target =
        graph.Add(OpKind::kOneHot, {labels}, OneHotAttrs{model.classes()});
    loss = graph.Add(OpKind::kMseLoss, {x, target});
  } else {
    loss = graph.Add(OpKind::kNllLoss, {x, labels});
  }
  graph.AddResult("loss", loss);
  graph.AddResult("correct", graph.Add(OpKind::kCountCorrect, {x, labels}));
  return {x, loss};
}

Attrs UpdateAttrs(OptimizerSpec optimizer) {
  if (optimizer.hyper_inputs) optimizer.weight_decay = 0;
  return OptimizerOf(optimizer.kind).attrs(optimizer);
}

absl::StatusOr<Tensor> ZeroTensor(std::string name, std::vector<int64_t> dims) {
  Tensor tensor{std::move(name), std::move(dims), Buffer()};
  ASSIGN_OR_RETURN(tensor.data, Buffer::Create(F32(tensor.dims).bytes()));
  return tensor;
}

}  // namespace

int64_t ModelSpec::num_parameters() const {
  int64_t count = 0;
  for (int i = 0; i < layers(); ++i) {
    count += (widths[i] + 1) * widths[i + 1];
  }
  return count;
}

std::string ModelSpec::ToString() const { return absl::StrJoin(widths, "-"); }

std::vector<std::string> HyperInputs(const OptimizerSpec& optimizer) {
  if (!optimizer.hyper_inputs) return {};
  const std::vector<const char*>& names =
      OptimizerOf(optimizer.kind).hyper_inputs;
  return {names.begin(), names.end()};
}

absl::StatusOr<std::vector<int64_t>> ParseWidths(absl::string_view text) {
  std::vector<int64_t> widths;
  int64_t parameters = 0;
  for (const absl::string_view word : absl::StrSplit(text, '-')) {
    const absl::StatusOr<int64_t> width = ParseInteger(word, 1, kMaxWidth);
    if (!width.ok()) {
      widths.clear();
      break;
    }
    // Of the layer before, with its bias: never overflows within the bound.
    if (!widths.empty()) parameters += (widths.back() + 1) * *width;
    if (parameters > kMaxParameters) {
      return absl::InvalidArgumentError(
          absl::StrCat("want at most ", kMaxParameters, " parameters, got ",
                       parameters, " or more of ", Quote(text)));
    }
    widths.push_back(*width);
  }
  if (widths.size() >= 2) return widths;
  return absl::InvalidArgumentError(
      absl::StrCat("want two widths or more from 1 to ", kMaxWidth,
                   " joined by `-`, like 784-128-10, got ", Quote(text)));
}

absl::StatusOr<Graph> BuildTrainStep(const ModelSpec& model,
                                     const OptimizerSpec& optimizer,
                                     int64_t rows, int64_t batch) {
  Graph graph;
  const Optimizer& row = OptimizerOf(optimizer.kind);
  const Leaves leaves = AddLeaves(graph, model, rows, batch);
  std::vector<std::vector<Value>> states;  // of each param
  for (const Value param : leaves.params) {
    std::vector<Value>& state = states.emplace_back();
    for (const char* name : row.states) {
      state.push_back(graph.AddParam(
          absl::StrCat(param.node->name(), ".", name), param.type()));
    }
  }
  std::vector<Value> scalars = {graph.AddInput("lr", F32({}))};
  if (row.reads_step) scalars.push_back(graph.AddInput("step", F32({})));
  for (const std::string& name : HyperInputs(optimizer)) {
    scalars.push_back(graph.AddInput(name, F32({})));
  }

  const Forward forward = AddForward(graph, model, leaves);
  ASSIGN_OR_RETURN(const std::vector<Value> gradients,
                   Gradients(graph, forward.loss, leaves.params));

  graph.set_phase(Phase::kUpdate);
  const Attrs attrs = UpdateAttrs(optimizer);
  for (size_t i = 0; i < leaves.params.size(); ++i) {
    std::vector<Value> operands = {leaves.params[i], gradients[i]};
    operands.insert(operands.end(), states[i].begin(), states[i].end());
    operands.insert(operands.end(), scalars.begin(), scalars.end());
    Node* const update = graph.Add(row.update, operands, attrs).node;
    graph.AddUpdate(leaves.params[i], update->result(0));
    for (size_t s = 0; s < states[i].size(); ++s) {
      graph.AddUpdate(states[i][s], update->result(static_cast<int>(s) + 1));
    }
  }
  RETURN_IF_ERROR(graph.Verify());
  return graph;
}

absl::StatusOr<Graph> BuildEvalStep(const ModelSpec& model, int64_t rows,
                                    int64_t batch) {
  Graph graph;
  const Leaves leaves = AddLeaves(graph, model, rows, batch);
  const Forward forward = AddForward(graph, model, leaves);
  // Also for mse, whose outputs are not logits: the order of the classes is
  // right, and the values sum to 1.
  graph.AddResult("probabilities",
                  graph.Add(OpKind::kSoftmax, {forward.logits}));
  RETURN_IF_ERROR(graph.Verify());
  return graph;
}

absl::StatusOr<std::vector<Tensor>> InitParams(const ModelSpec& model,
                                               Init init, uint64_t seed) {
  std::vector<Tensor> params;
  for (const auto& [name, dims] : ParamShapes(model)) {
    ASSIGN_OR_RETURN(Tensor param, ZeroTensor(name, dims));
    if (dims.size() == 2) {  // a bias stays 0
      // A stream per param, so that a layer more leaves the others alone.
      Random random(seed, kInitStream | params.size());
      const double fan_in = static_cast<double>(dims[0]);
      const double fan_out = static_cast<double>(dims[1]);
      const double deviation = std::sqrt(2 / fan_in);
      const double bound = std::sqrt(6 / (fan_in + fan_out));
      float* const w = param.data.as<float>();
      for (int64_t i = 0; i < param.num_elements(); ++i) {
        const double value = init == Init::kHe ? deviation * random.Normal()
                                               : random.Uniform(-bound, bound);
        w[i] = static_cast<float>(value);
      }
    }
    params.push_back(std::move(param));
  }
  return params;
}

absl::StatusOr<std::vector<Tensor>> InitOptimizerState(
    const ModelSpec& model, const OptimizerSpec& optimizer) {
  std::vector<Tensor> states;
  for (const auto& [name, dims] : ParamShapes(model)) {
    for (const char* state_name : OptimizerOf(optimizer.kind).states) {
      ASSIGN_OR_RETURN(Tensor state,
                       ZeroTensor(absl::StrCat(name, ".", state_name), dims));
      states.push_back(std::move(state));
    }
  }
  return states;
}

}  // namespace onestep
