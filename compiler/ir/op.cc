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
  for (Activation a : kAllActivations) {
    if (ActivationOp(a) == kind) return a;
  }
  return Activation::kNone;
}

Activation ActivationOfGrad(OpKind kind) {
  for (Activation a : kAllActivations) {
    if (ActivationGradOp(a) == kind) return a;
  }
  return Activation::kNone;
}

OpKind ActivationOp(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      break;
#define ACTIVATION(Kind, ...) \
  case Activation::k##Kind:   \
    return OpKind::k##Kind;
#include "kernels/activations.def"
#undef ACTIVATION
  }
  CHECK(false);
}

OpKind ActivationGradOp(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      break;
#define ACTIVATION(Kind, ...) \
  case Activation::k##Kind:   \
    return OpKind::k##Kind##Grad;
#include "kernels/activations.def"
#undef ACTIVATION
  }
  CHECK(false);
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
