// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/passes/mlp_graph.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/passes/autodiff.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

class MlpBuilder {
 public:
  explicit MlpBuilder(const MlpSpec& spec) : spec_(spec) {}

  Graph Build() {
    Leaves();
    Forward();
    const Value loss = LossOf();
    absl::StatusOr<std::vector<Value>> dws = Gradients(graph_, loss, params_);
    CHECK(dws.ok());
    graph_.set_phase(Phase::kUpdate);
    for (size_t i = 0; i < params_.size(); ++i) Update(params_[i], (*dws)[i]);
    graph_.AddResult("loss", loss);
    graph_.AddResult("correct", correct_);
    if (spec_.extra == ExtraUse::kGradient) {
      graph_.AddResult("extra", (*dws)[0]);
    }
    return std::move(graph_);
  }

 private:
  int layers() const { return static_cast<int>(spec_.widths.size()) - 1; }
  // Layer i reads the params of the layer before it.
  bool Shares(int i) const {
    return spec_.share_weights && i > 0 &&
           spec_.widths[i] == spec_.widths[i + 1] &&
           spec_.widths[i - 1] == spec_.widths[i];
  }

  void Leaves() {
    const int64_t n = spec_.table_rows;
    images_ =
        graph_.AddInput("images", {DType::kU8, {n, spec_.widths.front()}});
    labels_ = graph_.AddInput("labels", {DType::kI32, {n}});
    indices_ = graph_.AddInput("indices", {DType::kI32, {spec_.batch}});
    lr_ = graph_.AddInput("lr", F32({}));
    if (spec_.update == OpKind::kAdamUpdate) {
      step_ = graph_.AddInput("step", F32({}));
    }
    for (int i = 0; i < layers(); ++i) {
      if (Shares(i)) continue;
      const int64_t rows = spec_.widths[i], cols = spec_.widths[i + 1];
      AddParam(absl::StrCat("w", i + 1), F32({rows, cols}));
      AddParam(absl::StrCat("b", i + 1), F32({cols}));
    }
  }

  void AddParam(const std::string& name, const TensorType& type) {
    params_.push_back(graph_.AddParam(name, type));
    if (spec_.update == OpKind::kSgdUpdate) return;
    if (spec_.update == OpKind::kAdamUpdate) {
      graph_.AddParam("m_" + name, type);
    }
    graph_.AddParam("v_" + name, type);
  }

  void Forward() {
    graph_.set_phase(Phase::kForward);
    Value x = graph_.Add(OpKind::kGatherRows, {images_, indices_});
    labels_ = graph_.Add(OpKind::kGatherRows, {labels_, indices_});
    x = graph_.Add(OpKind::kCast, {x});
    x = graph_.Add(OpKind::kScale, {x}, ScaleAttrs{1.0f / 255});
    size_t param = 0;
    for (int i = 0; i < layers(); ++i) {
      if (Shares(i)) param -= 2;
      const Value w = params_[param++], b = params_[param++];
      const Value in = x;
      x = graph_.Add(OpKind::kMatMul, {x, w});
      x = graph_.Add(OpKind::kAddBias, {x, b});
      if (i == 0) MaybeExtra(ExtraUse::kPreActivation, x);
      if (i + 1 < layers() && spec_.activation != Activation::kNone) {
        x = AddActivation(graph_, spec_.activation, x);
        if (i == 0) MaybeExtra(ExtraUse::kHidden, x);
      }
      if (spec_.residual && in.type() == x.type()) {
        x = graph_.Add(OpKind::kAdd, {x, in});
      }
    }
    logits_ = x;
    MaybeExtra(ExtraUse::kOldWeight, params_[params_.size() - 2]);
  }

  void MaybeExtra(ExtraUse use, Value value) {
    if (spec_.extra == use) graph_.AddResult("extra", value);
  }

  Value LossOf() {
    graph_.set_phase(Phase::kLoss);
    const OneHotAttrs classes{spec_.widths.back()};
    Value loss;
    if (spec_.loss == Loss::kSoftmaxXent) {
      loss = graph_.Add(OpKind::kNllLoss, {logits_, labels_});
    } else {
      const Value t = graph_.Add(OpKind::kOneHot, {labels_}, classes);
      loss = graph_.Add(OpKind::kMseLoss, {logits_, t});
    }
    correct_ = graph_.Add(OpKind::kCountCorrect, {logits_, labels_});
    if (spec_.extra == ExtraUse::kProbabilities) {
      graph_.AddResult("extra", graph_.Add(OpKind::kSoftmax, {logits_}));
    } else if (spec_.extra == ExtraUse::kLabels) {
      graph_.AddResult("extra",
                       graph_.Add(OpKind::kOneHot, {labels_}, classes));
    }
    return loss;
  }

  void Update(Value param, Value gradient) {
    std::vector<Value> operands = {param, gradient};
    std::vector<Node*> states;
    for (const char* prefix : {"m_", "v_"}) {
      Node* const state = graph_.FindLeaf(prefix + param.node->name());
      if (state == nullptr) continue;
      states.push_back(state);
      operands.push_back(state->result());
    }
    operands.push_back(lr_);
    if (step_) operands.push_back(step_);
    Attrs attrs = GetOpDef(spec_.update).default_attrs;
    if (auto* sgd = std::get_if<SgdAttrs>(&attrs)) {
      sgd->weight_decay = spec_.weight_decay;
    } else if (auto* momentum = std::get_if<MomentumAttrs>(&attrs)) {
      momentum->weight_decay = spec_.weight_decay;
    } else if (auto* adam = std::get_if<AdamAttrs>(&attrs)) {
      adam->weight_decay = spec_.weight_decay;
      adam->decoupled = true;
    }
    Node* const update = graph_.Add(spec_.update, operands, attrs).node;
    graph_.AddUpdate(param, update->result());
    for (size_t i = 0; i < states.size(); ++i) {
      graph_.AddUpdate(states[i]->result(),
                       update->result(static_cast<int>(i) + 1));
    }
  }

  const MlpSpec& spec_;
  Graph graph_;
  Value images_, labels_, indices_, lr_, step_;
  Value logits_, correct_;
  std::vector<Value> params_;
};

}  // namespace

Graph MakeMlp(const MlpSpec& spec) { return MlpBuilder(spec).Build(); }

}  // namespace onestep
