// SPDX-License-Identifier: Apache-2.0
// Which result may lie in the memory of which operand.
#include "compiler/ir/graph.h"

namespace onestep {

bool MayOverwrite(Value value, Value operand) {
  const Node& node = *value.node;
  const int last = static_cast<int>(node.operands.size()) - 1;
  int reads = 0, at = 0;
  for (int i = 0; i <= last; ++i) {
    if (node.operands[i] == operand) {
      ++reads;
      at = i;
    }
  }
  if (reads == 0 || value.type() != operand.type()) return false;
  if (node.def().Has(kElementwise)) return value.index == 0;
  if (reads != 1) return false;
  if (node.def().Has(kUpdate)) {
    // w', v' and m' over operands 0, 2 and 3: the old values.
    return at == (value.index == 0 ? 0 : value.index + 1);
  }
  switch (node.kind) {
    case OpKind::kMatMul:
      return node.as<MatMulAttrs>().accumulate && at == last;
    case OpKind::kScatterAdd:
      return at == 0;
    case OpKind::kSgnsWindow:
    case OpKind::kHsWindow:
    case OpKind::kCbowWindow:
      return at == value.index - 1;  // in' over in, out' over out
    case OpKind::kLossGrad:
      if (value.index == 1) return at == 0;  // dlogits over logits
      return value.index == 3 && at == last &&
             node.as<LossGradAttrs>().bias == BiasGrad::kUpdate;
    case OpKind::kActivationGrad:
      if (value.index == 0) return at < 2;
      return at == last &&
             node.as<ActivationGradAttrs>().bias == BiasGrad::kUpdate;
    case OpKind::kSparseOuter:
      return node.as<SparseOuterAttrs>().accumulate && at == last;
    default:
      return false;
  }
}

}  // namespace onestep
