// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/op.h"

#include "compiler/ir/graph.h"
#include "compiler/ir/op_rules.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

std::vector<OpDef> MakeOps() {
  return {
#define OP(kind, text, min, max, results, traits, attrs)       \
  OpDef{OpKind::k##kind,                                       \
        text,                                                  \
        min,                                                   \
        max,                                                   \
        results,                                               \
        traits,                                                \
        attrs{},                                               \
        Infer##kind,                                           \
        [] {                                                   \
          if constexpr (((traits) & (kNoGrad | kLeaf)) != 0) { \
            return GradFn{GradRefused};                        \
          } else {                                             \
            return GradFn{Grad##kind};                         \
          }                                                    \
        }(),                                                   \
        Cost##kind,                                            \
        Batch##kind,                                           \
        Partition##kind},
#include "compiler/ir/ops.def"
#undef OP
  };
}

}  // namespace

const std::vector<OpDef>& AllOps() {
  static const auto* const ops = new std::vector<OpDef>(MakeOps());
  return *ops;
}

const OpDef& GetOpDef(OpKind kind) {
  return AllOps()[static_cast<size_t>(kind)];
}

std::optional<OpKind> FindOp(absl::string_view name) {
  for (const OpDef& def : AllOps()) {
    if (name == def.name) return def.kind;
  }
  return std::nullopt;
}

Activation ActivationOf(OpKind kind) {
  switch (kind) {
    case OpKind::kRelu:
      return Activation::kRelu;
    case OpKind::kTanh:
      return Activation::kTanh;
    case OpKind::kSigmoid:
      return Activation::kSigmoid;
    case OpKind::kGelu:
      return Activation::kGelu;
    default:
      return Activation::kNone;
  }
}

Activation ActivationOfGrad(OpKind kind) {
  for (Activation a : {Activation::kRelu, Activation::kTanh,
                       Activation::kSigmoid, Activation::kGelu}) {
    if (ActivationGradOp(a) == kind) return a;
  }
  return Activation::kNone;
}

OpKind ActivationOp(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return OpKind::kRelu;
    case Activation::kTanh:
      return OpKind::kTanh;
    case Activation::kSigmoid:
      return OpKind::kSigmoid;
    case Activation::kGelu:
      return OpKind::kGelu;
    case Activation::kNone:
      break;
  }
  CHECK(false);
}

OpKind ActivationGradOp(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return OpKind::kReluGrad;
    case Activation::kTanh:
      return OpKind::kTanhGrad;
    case Activation::kSigmoid:
      return OpKind::kSigmoidGrad;
    case Activation::kGelu:
      return OpKind::kGeluGrad;
    case Activation::kNone:
      break;
  }
  CHECK(false);
}

bool ActivationGradReadsOperand(Activation activation) {
  return activation == Activation::kGelu;
}

const char* ToString(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return "none";
    case Activation::kRelu:
    case Activation::kTanh:
    case Activation::kSigmoid:
    case Activation::kGelu:
      return GetOpDef(ActivationOp(activation)).name;
  }
  return "?";
}

const char* ToString(Loss loss) {
  switch (loss) {
    case Loss::kSoftmaxXent:
      return "softmax_xent";
    case Loss::kMse:
      return "mse";
  }
  return "?";
}

const char* ToString(BiasGrad bias) {
  switch (bias) {
    case BiasGrad::kNone:
      return "none";
    case BiasGrad::kGrad:
      return "grad";
    case BiasGrad::kUpdate:
      return "update";
  }
  return "?";
}

}  // namespace onestep
