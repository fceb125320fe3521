// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_hidden_split.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/lower/cuda/cuda_op.h"
#include "compiler/lower/cuda/cuda_ops.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// A persistent kernel traps when it has waited so long for another block.
constexpr uint64_t kTimeoutNs = 2'000'000'000;

absl::Status No(absl::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat("want one hidden layer with SGD over bytes: ", what));
}

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph) {}

  absl::StatusOr<HiddenSplitMatch> Run() {
    RETURN_IF_ERROR(MatchLoss());
    RETURN_IF_ERROR(MatchForward());
    RETURN_IF_ERROR(MatchBackward());
    RETURN_IF_ERROR(MatchOutputs());
    int ops = 0;
    for (const auto& node : graph_.nodes()) {
      if (node->def().Has(kLeaf)) continue;
      ++ops;
      const OpCost cost = CostOf(*node);
      match_.flops += cost.flops;
      match_.bytes += cost.bytes;
    }
    if (ops != 8) return No(absl::StrCat("the step has ", ops, " ops, not 8"));
    match_.tables = {{match_.images, match_.indices, match_.shape.features},
                     {match_.labels, match_.indices, int64_t{sizeof(int32_t)}}};
    return std::move(match_);
  }

 private:
  static bool IsMatMul(const Node* node, const MatMulAttrs& attrs) {
    return node->kind == OpKind::kMatMul && node->as<MatMulAttrs>() == attrs;
  }

  Node* OnlyUser(Value value, OpKind kind, const MatMulAttrs* attrs) const {
    Node* found = nullptr;
    for (Node* user : graph_.Users(value)) {
      if (user->kind != kind) continue;
      if (attrs != nullptr && user->as<MatMulAttrs>() != *attrs) continue;
      if (found != nullptr) return nullptr;
      found = user;
    }
    return found;
  }

  absl::Status MatchLoss() {
    for (const auto& node : graph_.nodes()) {
      if (node->kind == OpKind::kLossGrad) loss_ = node.get();
    }
    if (loss_ == nullptr) return No("no fused loss");
    const LossGradOp loss(*loss_);
    const LossGradAttrs& attrs = loss.attrs;
    if (attrs.loss != Loss::kSoftmaxXent) return No("the loss is not softmax");
    if (!attrs.gather || !attrs.scaled || attrs.bias != BiasGrad::kUpdate) {
      return No("the loss does not update its bias");
    }
    logits_ = loss.logits.node;
    labels_ = loss.labels, indices_ = loss.indices;
    lr_ = loss.lr, b2_ = loss.bias;
    return absl::OkStatus();
  }

  absl::Status MatchForward() {
    MatMulAttrs plain;
    plain.bias = true;
    if (!IsMatMul(logits_, plain) || logits_->operands[2] != b2_) {
      return No("the logits are no matmul with a bias");
    }
    w2_ = logits_->operands[1];
    hidden_ = logits_->operands[0].node;
    if (hidden_->kind == OpKind::kActivation) {
      return No(absl::StrCat("activation ", hidden_->op()));
    }
    if (hidden_->kind != OpKind::kMatMul) return No("no hidden layer");
    activation_ = hidden_->as<MatMulAttrs>().activation;
    // The kernels keep the activation's result, so its gradient must follow
    // from the result alone.
    if (activation_ == Activation::kNone ||
        ActivationGradReadsOperand(activation_)) {
      return No(absl::StrCat("activation ", ToString(activation_)));
    }
    match_.shape.act = activation_;
    plain.activation = activation_;
    if (!IsMatMul(hidden_, plain)) return No("the hidden layer has no bias");
    w1_ = hidden_->operands[1], b1_ = hidden_->operands[2];
    input_ = hidden_->operands[0].node;
    if (input_->kind != OpKind::kGatherConvert ||
        input_->operands[1] != indices_) {
      return No("more than one hidden layer, or no bytes below it");
    }
    images_ = input_->operands[0];
    match_.shape.alpha = input_->as<ScaleAttrs>().alpha;
    match_.shape.batch = input_->types[0].dims[0];
    match_.shape.features = input_->types[0].dims[1];
    match_.shape.hidden = hidden_->types[0].dims[1];
    match_.shape.classes = logits_->types[0].dims[1];
    const int64_t models = logits_->types[0].models;
    match_.shape.models = std::max<int64_t>(models, 1);
    for (const Value own : {w1_, b1_, w2_, b2_, lr_}) {
      if (own.type().models != models) return No("weights that models share");
    }
    if (loss_->as<LossGradAttrs>().rows > 0) return No("a part of a batch");
    return absl::OkStatus();
  }

  absl::Status MatchBackward() {
    const Value d = loss_->result(LossGradOp::kDlogits);
    MatMulAttrs trans_b, update;
    trans_b.trans_b = true;
    update.trans_a = update.accumulate = true;
    Node* const dh = OnlyUser(d, OpKind::kMatMul, &trans_b);
    if (dh == nullptr || dh->operands[1] != w2_) return No("no gradient of w2");
    Node* const e = OnlyUser(dh->result(), OpKind::kActivationGrad, nullptr);
    const ActivationGradAttrs want = {activation_, BiasGrad::kUpdate};
    if (e == nullptr || e->as<ActivationGradAttrs>() != want ||
        e->operands[0] != hidden_->result() || e->operands[2] != b1_) {
      return No("the activation's gradient does not update its bias");
    }
    e_ = e;
    w2_update_ = OnlyUser(d, OpKind::kMatMul, &update);
    w1_update_ = OnlyUser(e->result(), OpKind::kMatMul, &update);
    if (w2_update_ == nullptr || w1_update_ == nullptr ||
        w2_update_->operands != std::vector<Value>{hidden_->result(), d, w2_} ||
        w1_update_->operands !=
            std::vector<Value>{input_->result(), e->result(), w1_}) {
      return No("weights are not updated by their gradient's matmul");
    }
    return absl::OkStatus();
  }

  absl::Status MatchOutputs() {
    const auto add = [&](Value leaf, CudaSlot::Role role, int& slot) {
      slot = static_cast<int>(match_.slots.size());
      CudaSlot& added = match_.slots.emplace_back();
      added.role = role;
      added.name = leaf.node->name();
      added.bytes = leaf.type().bytes();
    };
    for (const Value leaf : {images_, labels_, indices_, lr_}) {
      if (leaf.node->kind != OpKind::kInput) return No("data that is no input");
    }
    add(images_, CudaSlot::kInput, match_.images);
    add(labels_, CudaSlot::kInput, match_.labels);
    add(indices_, CudaSlot::kInput, match_.indices);
    add(lr_, CudaSlot::kInput, match_.lr);
    const std::pair<Value, Value> updates[] = {{w1_, w1_update_->result()},
                                               {b1_, e_->result(1)},
                                               {w2_, w2_update_->result()},
                                               {b2_, loss_->result(3)}};
    int* const slots[] = {&match_.w1, &match_.b1, &match_.w2, &match_.b2};
    for (int i = 0; i < 4; ++i) {
      const auto& [param, value] = updates[i];
      if (param.node->kind != OpKind::kParam ||
          graph_.UpdateOf(param.node) != value) {
        return No("a weight that is not updated");
      }
      add(param, CudaSlot::kParam, *slots[i]);
    }
    for (const Output& out : graph_.outputs()) {
      if (out.kind == Output::kUpdate) continue;
      int* const slot = out.value == loss_->result(0)   ? &match_.loss
                        : out.value == loss_->result(2) ? &match_.correct
                                                        : nullptr;
      if (slot == nullptr || *slot >= 0) {
        return No(absl::StrCat("result ", out.name));
      }
      *slot = static_cast<int>(match_.slots.size());
      match_.slots.push_back(
          {CudaSlot::kResult, out.name, out.value.type().bytes(), -1});
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  HiddenSplitMatch match_;
  Node* loss_ = nullptr;
  Node *logits_ = nullptr, *hidden_ = nullptr, *input_ = nullptr;
  Node *e_ = nullptr, *w1_update_ = nullptr, *w2_update_ = nullptr;
  Activation activation_ = Activation::kNone;
  Value images_, labels_, indices_, lr_, w1_, b1_, w2_, b2_;
};

cuda::HiddenSplitBuffers BuffersOf(const HiddenSplitMatch& match,
                                   const CudaBindings& at) {
  constexpr int64_t kBytes = 4;  // of an element of what advances
  cuda::HiddenSplitBuffers b = {};
  const auto f32 = [&](int slot) { return static_cast<float*>(at.at(slot)); };
  const auto result = [&](int slot, float*& base, int64_t& stride) {
    if (slot < 0 || !at.bound(slot)) return;
    const CudaBindings::Advancing place = at.advancing(slot);
    base = static_cast<float*>(place.base);
    stride = place.stride_bytes / kBytes;
  };
  b.images = static_cast<const uint8_t*>(at.at(match.images));
  b.labels = static_cast<const int32_t*>(at.at(match.labels));
  const CudaBindings::Advancing indices = at.advancing(match.indices);
  b.indices = static_cast<const int32_t*>(indices.base);
  b.indices_stride = indices.stride_bytes / kBytes;
  const CudaBindings::Advancing lr = at.advancing(match.lr);
  b.lr = static_cast<const float*>(lr.base);
  b.lr_stride = lr.stride_bytes / kBytes;
  b.w1 = f32(match.w1), b.b1 = f32(match.b1);
  b.w2 = f32(match.w2), b.b2 = f32(match.b2);
  result(match.loss, b.loss, b.loss_stride);
  result(match.correct, b.correct, b.correct_stride);
  b.control = static_cast<cuda::StepControl*>(at.control());
  b.workspace = at.workspace();
  return b;
}

// A node of a chain: all kernels of a step run one after the other.
CudaNode ChainNode(const char* label, const Launch& launch) {
  CudaNode node;
  node.label = label;
  node.launch = launch;
  node.writes = {kControlPlace};
  return node;
}

std::vector<CudaNode> StepNodes(const HiddenSplitMatch& match,
                                const cuda::HiddenSplitPlan& plan,
                                const CudaBindings& at, int64_t n) {
  const cuda::HiddenSplitBuffers buffers = BuffersOf(match, at);
  std::vector<CudaNode> nodes;
  for (int64_t k = 0; k < n; ++k) {
    nodes.push_back(
        ChainNode("forward", cuda::HiddenSplitForward(plan, buffers, k)));
    nodes.push_back(ChainNode("loss", cuda::HiddenSplitLoss(plan, buffers, k)));
    nodes.push_back(
        ChainNode("backward", cuda::HiddenSplitBackward(plan, buffers, k)));
  }
  nodes.push_back(ChainNode("advance", cuda::Advance(buffers.control, n)));
  return nodes;
}

std::vector<StepInfo> StepsOf(const HiddenSplitMatch& match,
                              const cuda::HiddenSplitPlan& plan) {
  const cuda::HiddenSplitShape& shape = plan.shape;
  std::string sizes = absl::StrFormat(
      "batch %d, %d-%d-%d, hidden units over %d blocks", shape.batch,
      shape.features, shape.hidden, shape.classes, plan.blocks);
  if (shape.models > 1) absl::StrAppend(&sizes, ", ", shape.models, " models");
  const char* const forward = "gather_convert + matmul + matmul";
  const char* const loss = "sum over blocks + loss_grad";
  const char* const backward =
      "matmul + activation_grad + matmul + matmul (updates)";
  const auto step = [&](const char* op, const char* phase, std::string from,
                        double share) {
    StepInfo info;
    info.op = op;
    info.phase = phase;
    info.label = absl::StrCat(op, " ", sizes);
    info.fused_from = std::move(from);
    info.implementation = "cuda kernel";
    info.in_place = true;
    info.flops = share * match.flops;
    info.bytes = share * match.bytes;
    return info;
  };
  if (plan.tier == CudaTier::kFused) {
    // Nearly all work is the first layer's, half of it in each direction.
    return {step("forward", "forward", forward, 0.5),
            step("loss", "loss", loss, 0),
            step("backward", "backward", backward, 0.5)};
  }
  return {step("step", "update",
               absl::StrCat(forward, " + ", loss, " + ", backward), 1)};
}

}  // namespace

absl::StatusOr<HiddenSplitMatch> MatchHiddenSplit(const Graph& graph) {
  return Matcher(graph).Run();
}

CudaSpec LowerHiddenSplit(const HiddenSplitMatch& match,
                          const cuda::HiddenSplitPlan& plan, bool each,
                          int64_t steps_per_launch) {
  CudaSpec spec;
  spec.slots = match.slots;
  spec.tables = match.tables;
  spec.workspace_bytes = plan.workspace_bytes;
  spec.steps = StepsOf(match, plan);
  spec.steps_per_launch = steps_per_launch;
  spec.plan = absl::StrCat("workspace of the blocks: ", plan.workspace_bytes,
                           " bytes\n");
  if (plan.tier == CudaTier::kPersistent) {
    spec.launch = CudaLaunch::kPersistent;
    spec.stops = plan.shape.models == 1;
    spec.persistent = [match, plan, stops = spec.stops](
                          const CudaBindings& at, int64_t first, int64_t n,
                          CudaSignals* signals) {
      cuda::PersistentSignals own = {};
      own.timeout_ns = kTimeoutNs;
      if (signals != nullptr) {
        if (stops) own.stop = &signals->stop;
        own.progress = &signals->progress;
      }
      return cuda::HiddenSplitPersistent(plan, BuffersOf(match, at), first, n,
                                         own);
    };
    return spec;
  }
  spec.launch = each ? CudaLaunch::kEach : CudaLaunch::kGraph;
  spec.nodes = [match, plan](const CudaBindings& at, int64_t n) {
    return StepNodes(match, plan, at, n);
  };
  return spec;
}

}  // namespace onestep
