// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/update_operands.h"

#include <variant>

#include "runtime/base/status.h"

namespace onestep {
namespace {

UpdateRule RuleOf(OpKind kind) {
  switch (kind) {
#define RULE(Rule)              \
  case OpKind::k##Rule##Update: \
    return UpdateRule::k##Rule;
    ONESTEP_UPDATE_RULES(RULE)
#undef RULE
    default:
      CHECK(false);
  }
}

struct AttributeReader {
  UpdateOperands& to;

  void operator()(const char*, float& value) const {
    CHECK(to.hypers < kMaxUpdateHypers);
    to.hyper[to.hypers++].value = value;
  }
  void operator()(const char*, bool& value) const { to.flag = value; }
  template <typename T>
  void operator()(const char*, T&) const {
    CHECK(false);
  }
};

}  // namespace

UpdateOperands OperandsOfUpdate(const Node& node) {
  const OpDef& def = node.def();
  UpdateOperands of;
  of.rule = RuleOf(node.kind);
  of.states = def.results - 1;
  of.lr = 2 + of.states;
  if (of.lr + 1 < def.min_operands) of.step = of.lr + 1;
  std::visit([&](auto attrs) { attrs.Visit(AttributeReader{of}); }, node.attrs);
  const int operands = static_cast<int>(node.operands.size());
  for (int i = def.min_operands; i < operands; ++i) {
    of.hyper[of.hypers - (def.max_operands - i)].operand = i;
  }
  return of;
}

}  // namespace onestep
