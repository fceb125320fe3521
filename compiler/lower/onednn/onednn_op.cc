// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/onednn/onednn_op.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep::onednn {
namespace {

using LowerFn = absl::StatusOr<OnednnCall> (*)(const OnednnOp&);

#define ONESTEP_BACKEND kOnednn
#include "compiler/lower/lower_fns.inc"
#undef ONESTEP_BACKEND

}  // namespace

OnednnView OnednnOp::View(Value value) const {
  const TensorType& type = value.type();
  OnednnView view;
  view.slot = context_.plan.SlotOf(value);
  view.dtype = type.dtype;
  view.cols = type.rank() == 0 ? 1 : type.dims.back();
  view.rows = type.num_elements() / view.cols;
  view.row_stride = view.cols;
  return view;
}

bool OnednnOp::IsOver(Value operand) const {
  return context_.plan.SlotOf(operand) == context_.plan.SlotOf(node_.result());
}

absl::Status OnednnOp::NoPrimitive() const {
  return absl::UnimplementedError(
      absl::StrCat(node_.op(), " on onednn: no primitive"));
}

// Of many models it makes none: its sums come in another order than those of
// one model do.
Implementations Lower(const LowerContext& context, Node& node) {
  const LowerFn lower = kLowerFns[static_cast<size_t>(node.kind)];
  if (lower == nullptr || node.models() > 0) return {};
  return {{KernelSource::kOnednn,
           [lower, &context, &node]() -> absl::StatusOr<LoweredStep> {
             ASSIGN_OR_RETURN(OnednnCall made, lower({context, node}));
             return LoweredStep{std::move(made.call),
                                absl::StrCat("onednn ", made.implementation)};
           }}};
}

}  // namespace onestep::onednn
