// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/lower/update_operands.h"
#include "kernels/reference.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

using Tensor = std::vector<double>;

int64_t Rows(const TensorType& type) { return type.dims[0]; }
int64_t Cols(const TensorType& type) {
  return type.rank() == 2 ? type.dims[1] : 1;
}

// One node: operands in, results out.
struct Step {
  const Node& node;
  std::vector<const double*> in;
  std::vector<Tensor>& out;

  const TensorType& in_type(int i) const { return node.operands[i].type(); }
  double* y(int i = 0) const { return out[i].data(); }
  int64_t n() const { return node.types[0].num_elements(); }

  void Slice(int64_t axis, int64_t begin) const;
  void MatMul() const;
  void BlockMatMul() const;
  reference::SigmoidBceArgs Pairs() const;
  void Window() const;
  void SparseMatMul() const;
  void SparseOuter() const;
  void LossGrad() const;
  void ActivationGrad() const;
  void Update() const;
  void SumBias(BiasGrad bias, const double* dx, int64_t rows, const double* b,
               Tensor& db) const;
  void Run() const;
};

// Of a value [N] or [B,C]; -1: all of it.
void Step::Slice(int64_t axis, int64_t begin) const {
  if (axis == -1) return reference::Scale(in[0], 1, y(), n());
  reference::Slice(in[0], y(), Rows(node.types[0]), Cols(node.types[0]),
                   Cols(in_type(0)), axis == 0 ? begin : 0,
                   axis == 1 ? begin : 0);
}

void Step::MatMul() const {
  const auto& attrs = node.as<MatMulAttrs>();
  const int64_t m = Rows(node.types[0]), n = Cols(node.types[0]);
  const int64_t k = in_type(0).dims[attrs.trans_a ? 0 : 1];
  reference::MatMul(in[0], in[1], y(), m, n, k, attrs.trans_a, attrs.trans_b);
  size_t next = 2;
  if (attrs.bias) reference::AddBias(y(), in[next++], y(), m, n);
  if (attrs.accumulate) reference::Add(in[next++], y(), y(), m * n);
  reference::Activate(attrs.activation, y(), y(), m * n);
}

void Step::BlockMatMul() const {
  const auto& attrs = node.as<BlockMatMulAttrs>();
  const int64_t m = Rows(node.types[0]) / attrs.blocks;
  const int64_t n = Cols(node.types[0]);
  const int64_t k =
      attrs.trans_a ? Rows(in_type(0)) / attrs.blocks : Cols(in_type(0));
  for (int64_t g = 0; g < attrs.blocks; ++g) {
    reference::MatMul(in[0] + g * m * k, in[1] + g * k * n, y() + g * m * n, m,
                      n, k, attrs.trans_a, attrs.trans_b);
  }
}

reference::SigmoidBceArgs Step::Pairs() const {
  return {.z = in[0],
          .mask = in[1],
          .weights = in[2],
          .labels = in.size() > 3 ? in[3] : nullptr,
          .rows = Rows(in_type(0)),
          .cols = Cols(in_type(0)),
          .blocks = Rows(in_type(2)),
          .positives = node.as<PositivesAttrs>().positives};
}

void Step::Window() const {
  const bool cbow = node.kind == OpKind::kCbowWindow;
  const bool labels = node.kind == OpKind::kHsWindow || in.size() == 9;
  const int outputs = cbow ? 5 : 4;
  reference::WindowArgs args = {};
  args.in = in[0];
  args.out = in[1];
  args.contexts = in[2];
  (cbow ? args.mean : args.mask) = in[3];
  if (cbow) args.spread = in[4];
  args.outputs = in[outputs];
  args.weights = in[outputs + 1];
  if (labels) args.labels = in[outputs + 2];
  args.lr = *in.back();
  args.in_rows = Rows(in_type(0));
  args.out_rows = Rows(in_type(1));
  args.cols = Cols(in_type(0));
  args.num_contexts = Rows(in_type(2));
  args.num_outputs = Rows(in_type(outputs));
  if (!labels) args.positives = node.as<PositivesAttrs>().positives;
  *y(0) = reference::Window(args, y(1), y(2));
}

// Over the whole batch, zeros included: what skipping them must not change.
void Step::SparseMatMul() const {
  const auto& attrs = node.as<SparseMatMulAttrs>();
  const int64_t m = Rows(node.types[0]), n = Cols(node.types[0]);
  const int64_t k = Rows(in_type(1));
  Tensor x(m * k);
  reference::ToDense(in[0], x.data(), m, k, Cols(in_type(0)));
  reference::MatMul(x.data(), in[1], y(), m, n, k, false, false);
  if (attrs.bias) reference::AddBias(y(), in[2], y(), m, n);
  reference::Activate(attrs.activation, y(), y(), m * n);
}

void Step::SparseOuter() const {
  const auto& attrs = node.as<SparseOuterAttrs>();
  const int64_t batch = Rows(in_type(0));
  const int64_t k = Rows(node.types[0]), n = Cols(node.types[0]);
  Tensor x(batch * k);
  reference::ToDense(in[0], x.data(), batch, k, Cols(in_type(0)));
  reference::MatMul(x.data(), in[1], y(), k, n, batch, true, false);
  if (attrs.accumulate) reference::Add(in[2], y(), y(), k * n);
}

// db = column sums of dx, or b + db.
void Step::SumBias(BiasGrad bias, const double* dx, int64_t rows,
                   const double* b, Tensor& db) const {
  const int64_t cols = std::ssize(db);
  reference::ReduceRows(dx, db.data(), rows, cols);
  if (bias == BiasGrad::kUpdate) {
    reference::Add(b, db.data(), db.data(), cols);
  }
}

void Step::LossGrad() const {
  const auto& attrs = node.as<LossGradAttrs>();
  const int64_t rows = Rows(in_type(0)), cols = Cols(in_type(0));
  const double* logits = in[0];
  Tensor labels(rows);
  if (attrs.gather) {
    reference::GatherRows(in[1], in[2], labels.data(), rows, 1);
  } else {
    labels.assign(in[1], in[1] + rows);
  }
  size_t next = attrs.gather ? 3 : 2;
  double* d = y(1);
  switch (attrs.loss) {
    case Loss::kSoftmaxXent:
      *y(0) = reference::NllLoss(logits, labels.data(), rows, cols,
                                 BatchRows(node));
      reference::Softmax(logits, d, rows, cols);
      reference::MinusOneHot(d, labels.data(), d, rows, cols);
      // As the textbook's scale holds it.
      reference::Scale(d, 1.0f / static_cast<float>(BatchRows(node)), d,
                       rows * cols);
      break;
    case Loss::kMse: {
      Tensor t(rows * cols);
      reference::OneHot(labels.data(), t.data(), rows, cols);
      *y(0) = reference::MseLoss(logits, t.data(), rows * cols,
                                 BatchElements(node));
      reference::MseGrad(logits, t.data(), d, rows * cols, BatchElements(node));
      break;
    }
  }
  *y(2) = reference::CountCorrect(logits, labels.data(), rows, cols);
  if (attrs.scaled) reference::Scale(d, -*in[next++], d, rows * cols);
  if (attrs.bias != BiasGrad::kNone) {
    SumBias(attrs.bias, d, rows, next < in.size() ? in[next] : nullptr, out[3]);
  }
}

void Step::ActivationGrad() const {
  const auto& attrs = node.as<ActivationGradAttrs>();
  reference::ActivateGrad(attrs.activation, in[0], in[1], y(), n());
  if (attrs.bias != BiasGrad::kNone) {
    SumBias(attrs.bias, y(), Rows(in_type(0)), in.size() > 2 ? in[2] : nullptr,
            out[1]);
  }
}

void Step::Update() const {
  const UpdateOperands update = OperandsOfUpdate(node);
  reference::UpdateArgs args = {};
  args.w = in[0];
  args.dw = in[1];
  args.w_out = y();
  for (int i = 0; i < update.states; ++i) {
    args.state[i] = in[2 + i];
    args.state_out[i] = y(1 + i);
  }
  args.lr = *in[update.lr];
  if (update.step >= 0) args.step = *in[update.step];
  for (int i = 0; i < update.hypers; ++i) {
    const UpdateOperands::Hyper& hyper = update.hyper[i];
    args.hyper[i] = hyper.operand < 0 ? hyper.value : *in[hyper.operand];
  }
  args.flag = update.flag;
  args.n = n();
  reference::Update(update.rule, args);
}

// Long because it has a case for every op.
void Step::Run() const {
  switch (node.kind) {
    case OpKind::kInput:
    case OpKind::kParam:
      return;  // bound
    case OpKind::kConstant:
      out[0].assign(n(), node.as<ConstantAttrs>().value);
      return;
    case OpKind::kGatherRows:
      return reference::GatherRows(in[0], in[1], y(), Rows(node.types[0]),
                                   Cols(node.types[0]));
    case OpKind::kScatterAdd:
      return reference::ScatterAdd(in[0], in[1], in[2], y(), Rows(in_type(0)),
                                   Rows(in_type(1)), Cols(in_type(0)));
    case OpKind::kCast:
    case OpKind::kBroadcastModels:  // of one of the models
      return reference::Scale(in[0], 1, y(), n());
    case OpKind::kOneHot:
      return reference::OneHot(in[0], y(), Rows(node.types[0]),
                               Cols(node.types[0]));
    case OpKind::kScale:
      return reference::Scale(in[0], node.as<ScaleAttrs>().alpha, y(), n());
    case OpKind::kMulScalar:
      return reference::Scale(in[0], node.as<ScaleAttrs>().alpha * *in[1], y(),
                              n());
    case OpKind::kAdd:
      return reference::Add(in[0], in[1], y(), n());
    case OpKind::kMul:
      return reference::Mul(in[0], in[1], y(), n());
    case OpKind::kMatMul:
      return MatMul();
    case OpKind::kBlockMatMul:
      return BlockMatMul();
    case OpKind::kAddBias:
      return reference::AddBias(in[0], in[1], y(), Rows(node.types[0]),
                                Cols(node.types[0]));
    case OpKind::kReduceRows:
      return reference::ReduceRows(in[0], y(), Rows(in_type(0)),
                                   Cols(in_type(0)));
    case OpKind::kBroadcastRows:
      return reference::BroadcastRows(in[0], y(), Rows(node.types[0]),
                                      Cols(node.types[0]));
    case OpKind::kRelu:
    case OpKind::kTanh:
    case OpKind::kSigmoid:
    case OpKind::kGelu:
      return reference::Activate(ActivationOf(node.kind), in[0], y(), n());
    case OpKind::kReluGrad:
    case OpKind::kTanhGrad:
    case OpKind::kSigmoidGrad:
    case OpKind::kGeluGrad:
      return reference::ActivateGrad(ActivationOfGrad(node.kind), in[0], in[1],
                                     y(), n());
    case OpKind::kSoftmax:
      return reference::Softmax(in[0], y(), Rows(in_type(0)), Cols(in_type(0)));
    case OpKind::kSoftmaxGrad:
      return reference::SoftmaxGrad(in[0], in[1], y(), Rows(in_type(0)),
                                    Cols(in_type(0)));
    case OpKind::kNllLoss:
      *y() = reference::NllLoss(in[0], in[1], Rows(in_type(0)),
                                Cols(in_type(0)), BatchRows(node));
      return;
    case OpKind::kMinusOneHot:
      return reference::MinusOneHot(in[0], in[1], y(), Rows(in_type(0)),
                                    Cols(in_type(0)));
    case OpKind::kMseLoss:
      *y() = reference::MseLoss(in[0], in[1], in_type(0).num_elements(),
                                BatchElements(node));
      return;
    case OpKind::kMseGrad:
      return reference::MseGrad(in[0], in[1], y(), n(), BatchElements(node));
    case OpKind::kSigmoidBce:
      *y() = reference::SigmoidBce(Pairs());
      return;
    case OpKind::kSigmoidBceGrad:
      return reference::SigmoidBceGrad(Pairs(), y());
    case OpKind::kCountCorrect:
      *y() = reference::CountCorrect(in[0], in[1], Rows(in_type(0)),
                                     Cols(in_type(0)));
      return;
    case OpKind::kSgdUpdate:
    case OpKind::kMomentumUpdate:
    case OpKind::kAdamUpdate:
      return Update();
    case OpKind::kSlice:
      return Slice(node.as<SliceAttrs>().axis, node.as<SliceAttrs>().begin);
    case OpKind::kExchange:  // of one worker: it has the whole value
      return Slice(node.as<ExchangeAttrs>().to, node.as<ExchangeAttrs>().begin);
    case OpKind::kGatherConvert:
      reference::GatherRows(in[0], in[1], y(), Rows(node.types[0]),
                            Cols(node.types[0]));
      return reference::Scale(y(), node.as<ScaleAttrs>().alpha, y(), n());
    case OpKind::kLossGrad:
      return LossGrad();
    case OpKind::kActivationGrad:
      return ActivationGrad();
    case OpKind::kSgnsWindow:
    case OpKind::kHsWindow:
    case OpKind::kCbowWindow:
      return Window();
    case OpKind::kGatherSparse:
      return reference::GatherSparse(
          in[0], in[1], node.as<GatherSparseAttrs>().alpha, y(),
          Rows(node.types[0]), Cols(in_type(0)), Cols(node.types[0]));
    case OpKind::kSparseMatMul:
      return SparseMatMul();
    case OpKind::kSparseOuter:
      return SparseOuter();
  }
}

int64_t AllElements(const TensorType& type) {
  return type.num_elements() * std::max<int64_t>(1, type.models);
}

absl::StatusOr<Tensor> Bound(const Node& leaf, const TensorMap& bindings) {
  const auto it = bindings.find(leaf.name());
  if (it == bindings.end()) {
    return absl::NotFoundError(
        absl::StrCat("oracle: want a value of ", leaf.name(), ", got none"));
  }
  if (std::ssize(it->second) != AllElements(leaf.types[0])) {
    return absl::InvalidArgumentError(absl::StrCat(
        "oracle: ", leaf.name(), ": want ", AllElements(leaf.types[0]),
        " elements, got ", it->second.size()));
  }
  return it->second;
}

// One model after the other.
void RunNode(const Node& node, const std::vector<const Tensor*>& in,
             std::vector<Tensor>& out) {
  const int64_t models = std::max<int64_t>(1, node.models());
  std::vector<Tensor> own;
  for (int64_t k = 0; k < models; ++k) {
    own.clear();
    for (const TensorType& type : node.types) {
      own.emplace_back(type.num_elements());
    }
    Step step{node, {}, own};
    for (size_t i = 0; i < in.size(); ++i) {
      const TensorType& type = node.operands[i].type();
      const int64_t begin = type.models > 0 ? k * type.num_elements() : 0;
      step.in.push_back(in[i]->data() + begin);
    }
    step.Run();
    for (size_t r = 0; r < own.size(); ++r) {
      std::copy(own[r].begin(), own[r].end(),
                out[r].begin() + k * node.types[r].num_elements());
    }
  }
}

}  // namespace

absl::StatusOr<TensorMap> Evaluate(const Graph& graph,
                                   const TensorMap& bindings) {
  std::unordered_map<const Node*, std::vector<Tensor>> values;
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor>& out = values[node.get()];
    for (const TensorType& type : node->types) {
      out.emplace_back(AllElements(type));
    }
    if (node->def().Has(kLeaf)) {
      ASSIGN_OR_RETURN(out[0], Bound(*node, bindings));
      continue;
    }
    if (node->kind == OpKind::kExchange &&
        node->as<ExchangeAttrs>().workers != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("oracle: exchange: want 1 worker, got ",
                       node->as<ExchangeAttrs>().workers));
    }
    std::vector<const Tensor*> in;
    for (const Value& v : node->operands) {
      in.push_back(&values[v.node][v.index]);
    }
    RunNode(*node, in, out);
  }
  TensorMap outputs;
  for (const Output& o : graph.outputs()) {
    if (!outputs.emplace(o.name, values[o.value.node][o.value.index]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("oracle: two outputs named ", o.name));
    }
  }
  return outputs;
}

}  // namespace onestep
