// SPDX-License-Identifier: Apache-2.0
// Lowering to oneDNN: a Lower<Kind> for every op whose row of ops.def names
// kOnednn, in the file of its family. Each makes the primitive, or gives
// Unimplemented when oneDNN has none for these attributes or this aliasing.
#ifndef ONESTEP_COMPILER_LOWER_ONEDNN_ONEDNN_OP_H_
#define ONESTEP_COMPILER_LOWER_ONEDNN_ONEDNN_OP_H_

#include "absl/status/statusor.h"
#include "compiler/lower/implementation.h"
#include "runtime/cpu/onednn.h"

namespace onestep::onednn {

// A node that becomes a primitive, over the slots of its chain.
class OnednnOp {
 public:
  OnednnOp(const LowerContext& context, Node& node)
      : context_(context), node_(node) {}

  Node& node() const { return node_; }
  Onednn& library() const { return *context_.onednn; }
  template <typename A>
  const A& attrs() const {
    return node_.as<A>();
  }
  // A vector is a row, a scalar one element.
  OnednnView View(Value value) const;
  OnednnView In(int i) const { return View(node_.operands[i]); }
  OnednnView Out() const { return View(node_.result()); }
  // Whether the first result lies in the memory of `operand`.
  bool IsOver(Value operand) const;
  absl::Status NoPrimitive() const;

 private:
  const LowerContext& context_;
  Node& node_;
};

#define OP(kind, ...) \
  absl::StatusOr<OnednnCall> Lower##kind(const OnednnOp& op);
#include "compiler/ir/ops.def"
#undef OP

}  // namespace onestep::onednn

#endif  // ONESTEP_COMPILER_LOWER_ONEDNN_ONEDNN_OP_H_
