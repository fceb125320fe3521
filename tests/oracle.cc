// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
  const TensorType& out_type() const { return node.types[0]; }
  double* y(int i = 0) const { return out[i].data(); }
  int64_t n() const { return node.types[0].num_elements(); }
  template <typename A>
  const A& attrs() const {
    return node.as<A>();
  }
  // The values of an operand; null when there is none.
  const double* At(Value operand) const {
    for (size_t i = 0; i < in.size(); ++i) {
      if (node.operands[i] == operand) return in[i];
    }
    return nullptr;
  }
};

// ---- leaves and placement ---------------------------------------------------

// The values of leaves are bound.
void EvalInput(const Step&) {}
void EvalParam(const Step&) {}

void EvalConstant(const Step& s) {
  s.out[0].assign(s.n(), s.attrs<ConstantAttrs>().value);
}

// Of one of the models.
void EvalBroadcastModels(const Step& s) {
  reference::Scale(s.in[0], 1, s.y(), s.n());
}

// Of a value [N] or [B,C]; -1: all of it.
void Part(const Step& s, int64_t axis, int64_t begin) {
  if (axis == -1) return reference::Scale(s.in[0], 1, s.y(), s.n());
  reference::Slice(s.in[0], s.y(), Rows(s.out_type()), Cols(s.out_type()),
                   Cols(s.in_type(0)), axis == 0 ? begin : 0,
                   axis == 1 ? begin : 0);
}

void EvalSlice(const Step& s) {
  Part(s, s.attrs<SliceAttrs>().axis, s.attrs<SliceAttrs>().begin);
}

// Of one worker: it has the whole value.
void EvalExchange(const Step& s) {
  Part(s, s.attrs<ExchangeAttrs>().to, s.attrs<ExchangeAttrs>().begin);
}

// ---- rows of tables ---------------------------------------------------------

void EvalGatherRows(const Step& s) {
  reference::GatherRows(s.in[0], s.in[1], s.y(), Rows(s.out_type()),
                        Cols(s.out_type()));
}

void EvalGatherConvert(const Step& s) {
  EvalGatherRows(s);
  reference::Scale(s.y(), s.attrs<ScaleAttrs>().alpha, s.y(), s.n());
}

void EvalScatterAdd(const Step& s) {
  reference::ScatterAdd(s.in[0], s.in[1], s.in[2], s.y(), Rows(s.in_type(0)),
                        Rows(s.in_type(1)), Cols(s.in_type(0)));
}

void EvalOneHot(const Step& s) {
  reference::OneHot(s.in[0], s.y(), Rows(s.out_type()), Cols(s.out_type()));
}

// ---- elementwise ------------------------------------------------------------

void EvalCast(const Step& s) { reference::Scale(s.in[0], 1, s.y(), s.n()); }

void EvalScale(const Step& s) {
  reference::Scale(s.in[0], s.attrs<ScaleAttrs>().alpha, s.y(), s.n());
}

void EvalMulScalar(const Step& s) {
  reference::Scale(s.in[0], s.attrs<ScaleAttrs>().alpha * *s.in[1], s.y(),
                   s.n());
}

void EvalAdd(const Step& s) { reference::Add(s.in[0], s.in[1], s.y(), s.n()); }

void EvalMul(const Step& s) { reference::Mul(s.in[0], s.in[1], s.y(), s.n()); }

void EvalAddBias(const Step& s) {
  reference::AddBias(s.in[0], s.in[1], s.y(), Rows(s.out_type()),
                     Cols(s.out_type()));
}

void EvalReduceRows(const Step& s) {
  reference::ReduceRows(s.in[0], s.y(), Rows(s.in_type(0)), Cols(s.in_type(0)));
}

void EvalBroadcastRows(const Step& s) {
  reference::BroadcastRows(s.in[0], s.y(), Rows(s.out_type()),
                           Cols(s.out_type()));
}

// ---- activations ------------------------------------------------------------

void EvalActivation(const Step& s) {
  reference::Activate(s.attrs<ActivationAttrs>().activation, s.in[0], s.y(),
                      s.n());
}

// db = column sums of dx, or b + db.
void SumBias(BiasGrad bias, const double* dx, int64_t rows, const double* b,
             Tensor& db) {
  const int64_t cols = std::ssize(db);
  reference::ReduceRows(dx, db.data(), rows, cols);
  if (bias == BiasGrad::kUpdate) {
    reference::Add(b, db.data(), db.data(), cols);
  }
}

void EvalActivationGrad(const Step& s) {
  const ActivationGradOp op(s.node);
  reference::ActivateGrad(op.attrs.activation, s.At(op.saved), s.At(op.dy),
                          s.y(), s.n());
  if (op.attrs.bias != BiasGrad::kNone) {
    SumBias(op.attrs.bias, s.y(), Rows(s.out_type()), s.At(op.bias),
            s.out[ActivationGradOp::kBiasGrad]);
  }
}

// ---- products ---------------------------------------------------------------

void EvalMatMul(const Step& s) {
  const MatMulOp op(s.node);
  reference::MatMul(s.in[0], s.in[1], s.y(), op.m, op.n, op.k, op.attrs.trans_a,
                    op.attrs.trans_b);
  if (op.bias) reference::AddBias(s.y(), s.in[2], s.y(), op.m, op.n);
  if (op.c) reference::Add(s.in[2], s.y(), s.y(), op.m * op.n);
  reference::Activate(op.attrs.activation, s.y(), s.y(), op.m * op.n);
}

void EvalBlockMatMul(const Step& s) {
  const auto& attrs = s.attrs<BlockMatMulAttrs>();
  const int64_t m = Rows(s.out_type()) / attrs.blocks;
  const int64_t n = Cols(s.out_type());
  const int64_t k =
      attrs.trans_a ? Rows(s.in_type(0)) / attrs.blocks : Cols(s.in_type(0));
  for (int64_t g = 0; g < attrs.blocks; ++g) {
    reference::MatMul(s.in[0] + g * m * k, s.in[1] + g * k * n,
                      s.y() + g * m * n, m, n, k, attrs.trans_a, attrs.trans_b);
  }
}

void EvalGatherSparse(const Step& s) {
  reference::GatherSparse(s.in[0], s.in[1], s.attrs<GatherSparseAttrs>().alpha,
                          s.y(), Rows(s.out_type()), Cols(s.in_type(0)),
                          Cols(s.out_type()));
}

// Over the whole batch, zeros included: what skipping them must not change.
void EvalSparseMatMul(const Step& s) {
  const SparseMatMulOp op(s.node);
  const int64_t m = Rows(s.out_type()), n = Cols(s.out_type());
  const int64_t k = Rows(op.w.type());
  Tensor x(m * k);
  reference::ToDense(s.in[0], x.data(), m, k, Cols(op.x.type()));
  reference::MatMul(x.data(), s.in[1], s.y(), m, n, k, false, false);
  if (op.bias) reference::AddBias(s.y(), s.in[2], s.y(), m, n);
  reference::Activate(op.attrs.activation, s.y(), s.y(), m * n);
}

void EvalSparseOuter(const Step& s) {
  const SparseOuterOp op(s.node);
  const int64_t batch = Rows(op.x.type());
  const int64_t k = Rows(s.out_type()), n = Cols(s.out_type());
  Tensor x(batch * k);
  reference::ToDense(s.in[0], x.data(), batch, k, Cols(op.x.type()));
  reference::MatMul(x.data(), s.in[1], s.y(), k, n, batch, true, false);
  if (op.c) reference::Add(s.in[2], s.y(), s.y(), k * n);
}

// ---- losses -----------------------------------------------------------------

void EvalSoftmax(const Step& s) {
  reference::Softmax(s.in[0], s.y(), Rows(s.in_type(0)), Cols(s.in_type(0)));
}

void EvalSoftmaxGrad(const Step& s) {
  reference::SoftmaxGrad(s.in[0], s.in[1], s.y(), Rows(s.in_type(0)),
                         Cols(s.in_type(0)));
}

void EvalNllLoss(const Step& s) {
  *s.y() = reference::NllLoss(s.in[0], s.in[1], Rows(s.in_type(0)),
                              Cols(s.in_type(0)), BatchRows(s.node));
}

void EvalMinusOneHot(const Step& s) {
  reference::MinusOneHot(s.in[0], s.in[1], s.y(), Rows(s.in_type(0)),
                         Cols(s.in_type(0)));
}

void EvalMseLoss(const Step& s) {
  *s.y() = reference::MseLoss(s.in[0], s.in[1], s.in_type(0).num_elements(),
                              BatchElements(s.node));
}

void EvalMseGrad(const Step& s) {
  reference::MseGrad(s.in[0], s.in[1], s.y(), s.n(), BatchElements(s.node));
}

void EvalCountCorrect(const Step& s) {
  *s.y() = reference::CountCorrect(s.in[0], s.in[1], Rows(s.in_type(0)),
                                   Cols(s.in_type(0)));
}

reference::SigmoidBceArgs Pairs(const Step& s) {
  const SigmoidBceOp op(s.node);
  return {.z = s.in[0],
          .mask = s.in[1],
          .weights = s.in[2],
          .labels = s.in.size() > 3 ? s.in[3] : nullptr,
          .rows = Rows(op.z.type()),
          .cols = Cols(op.z.type()),
          .blocks = Rows(op.weights.type()),
          .positives = op.positives};
}

void EvalSigmoidBce(const Step& s) { *s.y() = reference::SigmoidBce(Pairs(s)); }
void EvalSigmoidBceGrad(const Step& s) {
  reference::SigmoidBceGrad(Pairs(s), s.y());
}

void EvalLossGrad(const Step& s) {
  const LossGradOp op(s.node);
  const int64_t rows = Rows(op.logits.type()), cols = Cols(op.logits.type());
  const double* logits = s.At(op.logits);
  Tensor labels(rows);
  if (op.indices) {
    reference::GatherRows(s.At(op.labels), s.At(op.indices), labels.data(),
                          rows, 1);
  } else {
    labels.assign(s.At(op.labels), s.At(op.labels) + rows);
  }
  double* d = s.y(LossGradOp::kDlogits);
  switch (op.attrs.loss) {
    case Loss::kSoftmaxXent:
      *s.y(LossGradOp::kLoss) = reference::NllLoss(logits, labels.data(), rows,
                                                   cols, BatchRows(s.node));
      reference::Softmax(logits, d, rows, cols);
      reference::MinusOneHot(d, labels.data(), d, rows, cols);
      // As the textbook's scale holds it.
      reference::Scale(d, 1.0f / static_cast<float>(BatchRows(s.node)), d,
                       rows * cols);
      break;
    case Loss::kMse: {
      Tensor t(rows * cols);
      reference::OneHot(labels.data(), t.data(), rows, cols);
      *s.y(LossGradOp::kLoss) = reference::MseLoss(
          logits, t.data(), rows * cols, BatchElements(s.node));
      reference::MseGrad(logits, t.data(), d, rows * cols,
                         BatchElements(s.node));
      break;
    }
  }
  *s.y(LossGradOp::kCorrect) =
      reference::CountCorrect(logits, labels.data(), rows, cols);
  if (op.lr) reference::Scale(d, -*s.At(op.lr), d, rows * cols);
  if (op.attrs.bias != BiasGrad::kNone) {
    SumBias(op.attrs.bias, d, rows, s.At(op.bias),
            s.out[LossGradOp::kBiasGrad]);
  }
}

// ---- updates ----------------------------------------------------------------

void EvalUpdate(const Step& s) {
  const UpdateOp op(s.node);
  reference::UpdateArgs args = {};
  args.w = s.At(op.w);
  args.dw = s.At(op.dw);
  args.w_out = s.y();
  for (size_t i = 0; i < op.states.size(); ++i) {
    args.state[i] = s.At(op.states[i]);
    args.state_out[i] = s.y(1 + static_cast<int>(i));
  }
  args.lr = *s.At(op.lr);
  if (op.step) args.step = *s.At(op.step);
  for (size_t i = 0; i < op.hypers.size(); ++i) {
    const UpdateOp::Hyper& hyper = op.hypers[i];
    args.hyper[i] = hyper.at ? *s.At(hyper.at) : hyper.value;
  }
  args.flag = op.flag;
  args.n = s.n();
  reference::Update(op.rule, args);
}
#define RULE(Rule) \
  void Eval##Rule##Update(const Step& s) { EvalUpdate(s); }
ONESTEP_UPDATE_RULES(RULE)
#undef RULE

// ---- windows of words -------------------------------------------------------

void EvalWindow(const Step& s) {
  const WindowOp op(s.node);
  reference::WindowArgs args = {};
  args.in = s.At(op.in);
  args.out = s.At(op.out);
  args.contexts = s.At(op.contexts);
  args.mask = s.At(op.mask);
  args.mean = s.At(op.mean);
  args.spread = s.At(op.spread);
  args.outputs = s.At(op.outputs);
  args.weights = s.At(op.weights);
  args.labels = s.At(op.labels);
  args.lr = *s.At(op.lr);
  args.in_rows = Rows(op.in.type());
  args.out_rows = Rows(op.out.type());
  args.cols = Cols(op.in.type());
  args.num_contexts = Rows(op.contexts.type());
  args.num_outputs = Rows(op.outputs.type());
  if (!op.labels) args.positives = op.positives;
  *s.y(WindowOp::kLoss) =
      reference::Window(args, s.y(WindowOp::kNewIn), s.y(WindowOp::kNewOut));
}
void EvalSgnsWindow(const Step& s) { EvalWindow(s); }
void EvalCbowWindow(const Step& s) { EvalWindow(s); }

// By kind: a row of ops.def without an evaluation does not compile.
constexpr void (*kEval[])(const Step&) = {
#define OP(kind, ...) Eval##kind,
#include "compiler/ir/ops.def"
#undef OP
};

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
  std::vector<Tensor> results;
  for (int64_t k = 0; k < models; ++k) {
    results.clear();
    for (const TensorType& type : node.types) {
      results.emplace_back(type.num_elements());
    }
    Step step{node, {}, results};
    for (size_t i = 0; i < in.size(); ++i) {
      const TensorType& type = node.operands[i].type();
      const int64_t begin = type.models > 0 ? k * type.num_elements() : 0;
      step.in.push_back(in[i]->data() + begin);
    }
    kEval[static_cast<size_t>(node.kind)](step);
    for (size_t r = 0; r < results.size(); ++r) {
      std::copy(results[r].begin(), results[r].end(),
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
