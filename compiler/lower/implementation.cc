// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/implementation.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/text.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

std::string TypesText(const std::vector<Value>& values) {
  return absl::StrJoin(values, ", ", [](std::string* out, const Value& v) {
    out->append(v.type().ToString());
  });
}

}  // namespace

const Implementation* FindImplementation(const Implementations& list,
                                         KernelSource source) {
  for (const Implementation& implementation : list) {
    if (implementation.source == source) return &implementation;
  }
  return nullptr;
}

absl::Status AddChosenStep(const LowerContext& context, Node& node,
                           const Implementations& list,
                           const std::vector<KernelSource>& wanted) {
  for (const KernelSource source : wanted) {
    const Implementation* const chosen = FindImplementation(list, source);
    if (chosen == nullptr) continue;
    absl::StatusOr<LoweredStep> step = chosen->make();
    if (absl::IsUnimplemented(step.status()) && source != wanted.back()) {
      continue;
    }
    RETURN_IF_ERROR(step.status());
    StepInfo info = Describe(context.plan, node);
    info.library = source != KernelSource::kLoop;
    info.implementation = std::move(step->implementation);
    if (context.next_rows != nullptr) {
      absl::StrAppend(&info.implementation, ", fetches ahead");
    }
    context.chain.AddStep(std::move(info), std::move(step->call));
    context.chain.SetRepeat(std::move(step->repeat));
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(node.op(), ": no implementation"));
}

StepInfo Describe(const MemoryPlan& plan, Node& node) {
  StepInfo info;
  info.op = node.op();
  info.phase = ToString(node.phase);
  info.fused_from = absl::StrJoin(node.fused_from, " + ");
  info.origins = node.origins;
  for (const Value& operand : node.operands) {
    info.operands.push_back(operand.type());
  }
  info.results = node.types;
  std::vector<Value> results;
  for (int r = 0; r < static_cast<int>(node.types.size()); ++r) {
    results.push_back(node.result(r));
    for (const Value& operand : node.operands) {
      info.in_place |= plan.SlotOf(operand) == plan.SlotOf(results.back());
    }
  }
  const std::string attrs = PrintAttrs(node.kind, node.attrs);
  info.label =
      absl::StrCat(info.op, attrs.empty() ? "" : " ", attrs, " ",
                   TypesText(node.operands), " -> ", TypesText(results));
  const OpCost cost = CostOf(node);
  info.flops = cost.flops;
  info.bytes = cost.bytes;
  return info;
}

void AddCopyStep(const MemoryPlan& plan, Chain& chain, int from, int to) {
  StepInfo info;
  info.op = "copy";
  info.phase = ToString(Phase::kUpdate);
  const int64_t bytes = plan.slots[from].bytes;
  info.label = absl::StrCat("copy ", bytes, " bytes to ", plan.slots[to].name);
  info.implementation = "memcpy";
  info.bytes = 2.0 * bytes;
  chain.AddStep(std::move(info),
                [=, x = chain.address<char>(from),
                 y = chain.address<char>(to)] { std::memcpy(*y, *x, bytes); });
}

}  // namespace onestep
