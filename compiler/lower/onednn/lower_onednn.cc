// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "compiler/lower/lower.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

class OnednnLowering {
 public:
  OnednnLowering(const LowerContext& context, Node& node)
      : context_(context), node_(node) {}

  absl::StatusOr<LoweredStep> Run() {
    ASSIGN_OR_RETURN(OnednnCall call, Make());
    return LoweredStep{std::move(call.call),
                       absl::StrCat("onednn ", call.implementation)};
  }

 private:
  // A vector is a row, a scalar one element.
  OnednnView View(Value value) const {
    const TensorType& type = value.type();
    OnednnView view;
    view.slot = context_.plan.SlotOf(value);
    view.dtype = type.dtype;
    view.cols = type.rank() == 0 ? 1 : type.dims.back();
    view.rows = type.num_elements() / view.cols;
    view.row_stride = view.cols;
    return view;
  }
  OnednnView In(int i) const { return View(node_.operands[i]); }
  OnednnView Out(int i = 0) const { return View(node_.result(i)); }
  bool SameSlot(const OnednnView& a, const OnednnView& b) const {
    return a.slot == b.slot;
  }

  absl::Status None() const {
    return absl::UnimplementedError(
        absl::StrCat(node_.def().name, " on onednn: no primitive"));
  }

  absl::StatusOr<OnednnCall> Make() {
    Onednn& onednn = *context_.onednn;
    // Its sums come in another order than those of one model do here.
    if (node_.models() > 0) return None();
    switch (node_.kind) {
      case OpKind::kCast:
        return onednn.MakeReorder(In(0), Out());
      case OpKind::kScale:
        return onednn.MakeScale(node_.as<ScaleAttrs>().alpha, In(0), Out());
      case OpKind::kMulScalar:
        return onednn.MakeBinary(OnednnBinary::kMul, In(0), In(1), Out(),
                                 node_.as<ScaleAttrs>().alpha, false);
      case OpKind::kAdd:
        return Commutative(OnednnBinary::kAdd);
      case OpKind::kMul:
        return Commutative(OnednnBinary::kMul);
      case OpKind::kAddBias:
        return onednn.MakeBinary(OnednnBinary::kAdd, In(0), In(1), Out(), 1,
                                 false);
      case OpKind::kMseGrad: {
        const float n = BatchElements(node_);
        if (SameSlot(In(1), Out())) return None();
        return onednn.MakeBinary(OnednnBinary::kSub, In(0), In(1), Out(),
                                 2.0f / n, false);
      }
      case OpKind::kMatMul:
        return MatMul();
      case OpKind::kReduceRows:
        return onednn.MakeReduceRows(In(0), Out());
      case OpKind::kRelu:
      case OpKind::kTanh:
      case OpKind::kSigmoid:
      case OpKind::kGelu:
        return onednn.MakeActivation(ActivationOf(node_.kind), In(0), Out());
      case OpKind::kReluGrad:
      case OpKind::kTanhGrad:
      case OpKind::kSigmoidGrad:
      case OpKind::kGeluGrad:
        if (SameSlot(In(0), Out())) return None();
        return onednn.MakeActivationGrad(ActivationOfGrad(node_.kind), In(0),
                                         In(1), Out());
      case OpKind::kSoftmax:
        return onednn.MakeSoftmax(In(0), Out());
      case OpKind::kSoftmaxGrad:
        if (SameSlot(In(0), Out())) return None();
        return onednn.MakeSoftmaxGrad(In(0), In(1), Out());
      case OpKind::kSgdUpdate:
        // w += -(dw * lr): one primitive when it is in place.
        if (HasWeightDecay(node_) || !SameSlot(In(0), Out())) {
          return None();
        }
        return onednn.MakeBinary(OnednnBinary::kMul, In(1), In(2), Out(), -1,
                                 true);
      case OpKind::kInput:
      case OpKind::kParam:
      case OpKind::kConstant:
      case OpKind::kGatherRows:
      case OpKind::kOneHot:
      case OpKind::kBroadcastRows:
      case OpKind::kNllLoss:
      case OpKind::kMinusOneHot:
      case OpKind::kMseLoss:
      case OpKind::kCountCorrect:
      case OpKind::kMomentumUpdate:
      case OpKind::kAdamUpdate:
      case OpKind::kGatherConvert:
      case OpKind::kSlice:
      case OpKind::kExchange:
      case OpKind::kBroadcastModels:
      case OpKind::kLossGrad:
      case OpKind::kActivationGrad:
      case OpKind::kGatherSparse:
      case OpKind::kSparseMatMul:
      case OpKind::kSparseOuter:
      case OpKind::kScatterAdd:
      case OpKind::kBlockMatMul:
      case OpKind::kSigmoidBce:
      case OpKind::kSigmoidBceGrad:
      case OpKind::kSgnsWindow:
      case OpKind::kHsWindow:
      case OpKind::kCbowWindow:
        return None();
    }
    CHECK(false);
  }

  // oneDNN may write over the first operand only.
  absl::StatusOr<OnednnCall> Commutative(OnednnBinary kind) {
    const bool swap = SameSlot(In(1), Out());
    return context_.onednn->MakeBinary(kind, In(swap), In(!swap), Out(), 1,
                                       false);
  }

  absl::StatusOr<OnednnCall> MatMul() {
    const MatMulAttrs& attrs = node_.as<MatMulAttrs>();
    // The sum post-op adds to the destination.
    const int last = static_cast<int>(node_.operands.size()) - 1;
    if (attrs.accumulate && !SameSlot(In(last), Out())) return None();
    Onednn::MatMul args;
    args.a = attrs.trans_a ? In(0).Transposed() : In(0);
    args.b = attrs.trans_b ? In(1).Transposed() : In(1);
    args.c = Out();
    if (attrs.bias) args.bias = In(2);
    args.accumulate = attrs.accumulate;
    args.activation = attrs.activation;
    return context_.onednn->MakeMatMul(args);
  }

  const LowerContext& context_;
  Node& node_;
};

}  // namespace

absl::StatusOr<LoweredStep> LowerToOnednn(const LowerContext& context,
                                          Node& node) {
  return OnednnLowering(context, node).Run();
}

}  // namespace onestep
