// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/loops/loop_op.h"

#include "absl/strings/str_cat.h"
#include "kernels/probe.h"
#include "runtime/base/status.h"

namespace onestep::loops {
namespace {

using LowerFn = Implementations (*)(const LoopOp&);

#define ONESTEP_BACKEND kLoops
#include "compiler/lower/lower_fns.inc"
#undef ONESTEP_BACKEND

}  // namespace

TensorType ModelsAsColumns(TensorType type) {
  if (type.models == 0) return type;
  if (type.dims.empty()) type.dims.push_back(1);
  type.dims.back() *= type.models;
  type.models = 0;
  return type;
}

int64_t Cols(Value value) {
  const TensorType type = ModelsAsColumns(value.type());
  return type.rank() == 0 ? 1 : type.dims.back();
}

int64_t Rows(Value value) {
  return ModelsAsColumns(value.type()).num_elements() / Cols(value);
}

float* const* LoopOp::Scratch(int64_t bytes) const {
  chain().RequestScratch(bytes);
  return chain().address<float>(Chain::kScratch);
}

std::optional<NextRows> LoopOp::next_rows() const {
  if (context_->next_rows == nullptr) return std::nullopt;
  CHECK(threads() == 1);  // the loops share no prefetch
  return *context_->next_rows;
}

Implementations LoopOp::Loop(std::function<absl::StatusOr<Call>()> make,
                             const char* note) const {
  return {{KernelSource::kLoop,
           [make = std::move(make), note]() -> absl::StatusOr<LoweredStep> {
             ASSIGN_OR_RETURN(Call call, make());
             return LoweredStep{std::move(call),
                                absl::StrCat("cpu ", CpuIsa(), note)};
           }}};
}

Implementations Lower(const LowerContext& context, Node& node) {
  const LoopOp op(context, node);
  if (node.models() > 1 && !node.def().Has(kModels)) return OneModelAtATime(op);
  const LowerFn lower = kLowerFns[static_cast<size_t>(node.kind)];
  CHECK(lower != nullptr);
  return lower(op);
}

}  // namespace onestep::loops
