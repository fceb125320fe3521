// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/op.h"

#include <algorithm>

#include "compiler/ir/ops/rules.h"

namespace onestep {
namespace {

std::vector<OpDef> MakeOps() {
  return {
#define OP(kind, text, min, max, results, traits, backends, attrs)  \
  OpDef{OpKind::k##kind, text,     min,     max,           results, \
        traits,          backends, attrs{}, k##kind##Rules},
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

bool OpDef::is_differentiable() const {
  return static_cast<GradFn>(rules.grad) != NotDifferentiated;
}

std::optional<NamedOp> FindOp(absl::string_view name) {
  for (const OpDef& def : AllOps()) {
    if (name == def.name) return NamedOp{def.kind, def.default_attrs};
    if (def.rules.names == nullptr) continue;
    for (OpName& other : def.rules.names()) {
      if (name == other.text) return NamedOp{def.kind, std::move(other.attrs)};
    }
  }
  return std::nullopt;
}

std::string NameOf(OpKind kind, const Attrs& attrs) {
  const OpDef& def = GetOpDef(kind);
  if (def.rules.names != nullptr) {
    for (OpName& other : def.rules.names()) {
      if (other.attrs == attrs) return std::move(other.text);
    }
  }
  return def.name;
}

Attrs AttrsOfName(OpKind kind, const Attrs& attrs) {
  const OpDef& def = GetOpDef(kind);
  return NameOf(kind, attrs) == def.name ? def.default_attrs : attrs;
}

}  // namespace onestep
